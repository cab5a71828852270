"""The look of the HTML report: one style sheet for light and dark screens and for paper.

Rules it keeps: it loads nothing; what a colour says is said in words as well.
"""

STYLE = """
:root { color-scheme: light dark; --ink: #1b222c; --soft: #596473; --ground: #fcfcfd; --panel: #f2f4f7;
  --edge: #d0d6de; --bad: #b0231c; --warn: #8a5a00; --good: #1f7148; --calm: #245f9e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ef; --soft: #9ba7b6; --ground: #11151a;
  --panel: #1a2028; --edge: #36404c; --bad: #ff8d83; --warn: #e6b450; --good: #62c490; --calm: #77b2f2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.2rem 4rem; max-width: 66rem; color: var(--ink);
  background: var(--ground); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .5rem; } h2 { font-size: 1.3rem; margin: 0 0 .6rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p { max-width: 48rem; margin: .4rem 0; overflow-wrap: anywhere; }
a { color: var(--calm); overflow-wrap: anywhere; }
.headline { font-size: 1.1rem; font-weight: 600; padding: .7rem .9rem; border-left: .35rem solid var(--edge);
  background: var(--panel); max-width: none; }
.critical, .high, .leak, .unread, .truncated, .hang, .too-small { color: var(--bad); }
.medium, .suspect, .exposed, .unknown, .unreachable, .inconclusive, .interrupted { color: var(--warn); }
.no-evidence, .ok { color: var(--good); } .low, .lowered { color: var(--calm); }
.info, .not-tested, .soft { color: var(--soft); }
p.headline.critical, p.headline.high { border-color: var(--bad); }
p.headline.medium { border-color: var(--warn); }
.tag { font-weight: 600; white-space: nowrap; } h2 .tag { margin-left: .6rem; font-size: 1rem; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1rem; margin: 1rem 0; }
section { margin: 1.8rem 0; padding: 1.2rem; background: var(--panel); border: 1px solid var(--edge);
  border-radius: .5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0;
  border-bottom: 1px solid var(--edge); }
th { color: var(--soft); font-size: .88rem; font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.1rem; margin: .6rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--ground);
  border: 1px solid var(--edge); border-radius: .3rem; padding: .6rem .8rem;
  font: .88rem/1.5 ui-monospace, monospace; }
figure { margin: 1rem 0; } figcaption { color: var(--soft); font-size: .9rem; max-width: 48rem; }
svg { display: block; width: 100%; max-width: 44rem; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
svg .axis { stroke: var(--edge); stroke-width: 1; }
svg .end { text-anchor: end; } svg .middle { text-anchor: middle; }
svg .fit { fill: none; stroke: var(--calm); stroke-width: 1.5; }
svg .limit { fill: none; stroke: var(--soft); stroke-width: 1; stroke-dasharray: 5 4; }
svg .clock, svg .control { fill: var(--calm); }
svg .probe { fill: none; stroke: var(--ink); stroke-width: 1.5; }
svg .outlier { fill: var(--bad); } svg .median { stroke: var(--ink); stroke-width: 2; }
@media (max-width: 36rem) { dl { grid-template-columns: 1fr; } }
@media print { body { max-width: none; } .finding { break-before: page; } nav { display: none; } }
"""
