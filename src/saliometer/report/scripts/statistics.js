// The few statistics that depend on what a reader picks: paired differences with an interval, rank correlation.

/** Random numbers that are the same every time (mulberry32), so that a page shows the same interval twice. */
function dice(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** The mean of group means, with a 95 % interval from resamples of the images within each group. */
function meanInterval(values, resamples = 2000) {
  const groups = GROUPS.map((some) => some.map((sample) => values[sample]).filter((value) => !Number.isNaN(value)))
    .filter((some) => some.length);
  const mean = (some) => some.reduce((sum, value) => sum + value, 0) / some.length;
  if (!groups.length) return { value: NaN, low: NaN, high: NaN, count: 0 };
  const count = groups.reduce((sum, some) => sum + some.length, 0);
  const value = mean(groups.map(mean));
  if (groups.some((some) => some.length < 2)) return { value, low: NaN, high: NaN, count };
  const roll = dice(count);
  const drawn = new Float64Array(resamples);
  for (let draw = 0; draw < resamples; draw += 1) {
    let total = 0;
    for (const some of groups) {
      let sum = 0;
      for (let i = 0; i < some.length; i += 1) sum += some[Math.floor(roll() * some.length)];
      total += sum / some.length;
    }
    drawn[draw] = total / groups.length;
  }
  drawn.sort();
  return { value, low: quantile(drawn, 0.025), high: quantile(drawn, 0.975), count };
}

/** Of sorted values, between the two nearest. */
function quantile(sorted, share) {
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

/** Places from 1, equal values share the mean of theirs. */
function ranks(values) {
  const order = values.map((value, place) => [value, place]).sort((a, b) => a[0] - b[0]);
  const found = new Array(values.length);
  for (let start = 0; start < order.length;) {
    let stop = start;
    while (stop + 1 < order.length && order[stop + 1][0] === order[start][0]) stop += 1;
    for (let i = start; i <= stop; i += 1) found[order[i][1]] = (start + stop) / 2 + 1;
    start = stop + 1;
  }
  return found;
}

/** Spearman's correlation of pairs that are both defined; NaN where there is no spread. */
function spearman(pairs) {
  const known = pairs.filter(([a, b]) => !Number.isNaN(a) && !Number.isNaN(b));
  const count = known.length;
  if (count < 3) return NaN;
  const [x, y] = [0, 1].map((side) => ranks(known.map((pair) => pair[side])));
  const middle = (count + 1) / 2;
  let xy = 0, xx = 0, yy = 0;
  for (let i = 0; i < count; i += 1) {
    xy += (x[i] - middle) * (y[i] - middle);
    xx += (x[i] - middle) ** 2;
    yy += (y[i] - middle) ** 2;
  }
  return xx && yy ? xy / Math.sqrt(xx * yy) : NaN;
}
