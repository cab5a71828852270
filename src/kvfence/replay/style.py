"""The look of the report: one style sheet, for light and dark screens and for paper.

It loads nothing from anywhere; colours that mean something differ in lightness too.
"""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5b6675; --paper: #ffffff; --card: #f5f7fa;
  --line: #d4dae2; --own: #2c6fbb; --other: #d1495b; --empty: #dfe4ea; --good: #217a4b; --bad: #b3261e;
  --accent: #2c6fbb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #9aa6b5; --paper: #12161c;
  --card: #1b2129; --line: #343d49; --own: #6aa9f0; --other: #ee6c7d; --empty: #333c47; --good: #5fc08d;
  --bad: #ff8a80; --accent: #6aa9f0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main, header { max-width: 62rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.5rem; }
h1 { font-size: 1.9rem; margin: 0 0 .4rem; line-height: 1.2; }
h2 { font-size: 1.4rem; margin: 0 0 .6rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
p { max-width: 46rem; margin: .5rem 0; }
.lead { font-size: 1.1rem; color: var(--soft); }
nav { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1.2rem 0 0; padding: 0; }
nav a { text-decoration: none; color: inherit; border: 1px solid var(--line); border-radius: 999px;
  padding: .25rem .85rem; background: var(--card); }
nav a:hover, nav a:focus { border-color: var(--accent); }
section { margin: 2.5rem 0; padding: 1.5rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .7rem; }
.verdict { display: inline-block; font-weight: 600; font-size: .85rem; border-radius: .3rem;
  padding: .1rem .5rem; border: 1px solid currentColor; margin-left: .6rem; vertical-align: middle; }
.good { color: var(--good); } .bad { color: var(--bad); } .soft { color: var(--soft); font-size: .9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .88rem; }
th, td { padding: .3rem 1rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--paper); border: 1px solid var(--line);
  border-radius: .4rem; padding: .7rem .9rem; margin: .5rem 0; font: .88rem/1.5 ui-monospace, monospace; }
mark { background: var(--other); color: #fff; border-radius: .2rem; padding: 0 .2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.2rem; margin: .8rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 1rem 0; } figcaption { color: var(--soft); font-size: .88rem; margin-top: .4rem; }
svg { display: block; max-width: 100%; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: var(--ink); }
.own { fill: var(--own); } .other { fill: var(--other); } .empty { fill: var(--empty); }
.read { stroke: var(--ink); stroke-width: 1.4; fill: none; }
.unread { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 3 2; fill: none; }
.grid { stroke: var(--card); stroke-width: .8; }
svg text.on { fill: #fff; text-anchor: middle; font-size: 10px; }
.key { display: flex; flex-wrap: wrap; gap: 1rem; font-size: .88rem; margin: .3rem 0; }
.key span::before { content: ""; display: inline-block; width: .8rem; height: .8rem; border-radius: .15rem;
  margin-right: .4rem; vertical-align: -.08rem; background: var(--swatch); }
.what-if { display: grid; grid-template-columns: max-content 1fr max-content; gap: .5rem 1rem;
  align-items: center; max-width: 46rem; }
.what-if input[type=range] { width: 100%; accent-color: var(--accent); }
.what-if output { font-variant-numeric: tabular-nums; text-align: right; min-width: 6rem; }
@media (max-width: 34rem) { .what-if { grid-template-columns: 1fr; } dl { grid-template-columns: 1fr; } }
@media print { section { break-inside: avoid; } nav { display: none; } }
"""

# What if: the arithmetic of `numbers.py` and `scaled.py`, so that a slider answers at once. A test holds the
# two against each other.
SCRIPT = """
function account(context, pool, page) {
  const held = Math.min(context, Math.floor(pool / page) * page);
  return { held, band: context - held, share: 100 * held / context, factor: pool / context,
    read: 8 * page, foreign: 8 * page - 1 };
}
function whole(number) { return number.toLocaleString("en-US"); }
function show() {
  const value = (id) => Number(document.getElementById(id).value);
  const context = value("context"), pool = value("pool"), page = value("page");
  const a = account(context, pool, page);
  const say = (id, words) => { document.getElementById(id).textContent = words; };
  say("context-out", whole(context)); say("pool-out", whole(pool)); say("page-out", whole(page));
  say("if-share", a.share.toFixed(2) + " %"); say("if-band", whole(a.band) + " tokens");
  say("if-factor", a.factor.toFixed(2));
  say("if-scaled", a.foreign + " of " + a.read + " (" + (100 * a.foreign / a.read).toFixed(1) + " %)");
  say("if-start", a.band > 0 ? "refused: the context is larger than the pool" : "starts");
  const most = Math.max(context, pool), width = 700;
  document.getElementById("bar-context").setAttribute("width", width * context / most);
  document.getElementById("bar-pool").setAttribute("width", width * Math.min(pool, most) / most);
  const band = document.getElementById("bar-band");
  band.setAttribute("x", width * a.held / most);
  band.setAttribute("width", width * a.band / most);
}
if (typeof document !== "undefined" && document.getElementById("context")) {
  for (const id of ["context", "pool", "page"]) document.getElementById(id).addEventListener("input", show);
  show();
}
"""
