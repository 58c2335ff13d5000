// Light, dark, or as the machine has it; those who draw are told when it changes.
const THEMES = ["auto", "light", "dark"];
const dark = matchMedia("(prefers-color-scheme: dark)");
const redraws = [];
const onTheme = (act) => redraws.push(act);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  const button = byId("theme");
  button.textContent = { auto: "Colours: auto", light: "Colours: light", dark: "Colours: dark" }[name];
  button.dataset.theme = name;
  try { localStorage.setItem("saliometer-theme", name); } catch { /* no storage here: the choice lasts for this page */ }
  for (const act of redraws) act();
}

function startTheme() {
  let kept = null;
  try { kept = localStorage.getItem("saliometer-theme"); } catch { /* see above */ }
  const button = byId("theme");
  button.addEventListener("click", () => {
    setTheme(THEMES[(THEMES.indexOf(button.dataset.theme) + 1) % THEMES.length]);
  });
  dark.addEventListener("change", () => { for (const act of redraws) act(); });
  setTheme(THEMES.includes(kept) ? kept : "auto");
}

startTheme();
if (matchMedia("(max-width: 640px)").matches) document.querySelector(".measured").open = false;
