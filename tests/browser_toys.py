"""What tests in a browser share."""

NASTY = '"><img src=x onerror=document.title="hurt"><script>document.title="hurt"</script>'
