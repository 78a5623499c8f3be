"""How the report looks: dark on white, at any width, verdicts told apart by mark and word as well as by colour."""

STYLE = """
:root { color-scheme: light; --ink: #1d2430; --soft: #57606d; --line: #dfe3e8; --tint: #f5f7f9; --accent: #005f96;
  --holds: #00664b; --doubt: #a63d00; --failed: #6a1b6e; --against: #8a1c4a; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; color: var(--ink); background: #fff; font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 56rem; margin: 0 auto; padding: 2.5rem 1.5rem 5rem; overflow-wrap: anywhere; }
h1, h2, h3 { line-height: 1.25; }
h1 { margin: 0 0 0.4rem; font-size: 1.9rem; }
h2 { margin: 3.5rem 0 0; padding-top: 1.2rem; border-top: 2px solid var(--ink); font-size: 1.35rem; }
h3 { margin: 0; font-size: 1.1rem; }
.up { font-size: 0.9rem; font-weight: 400; white-space: nowrap; }
a { color: var(--accent); }
code, pre { font: 0.88em/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
pre { padding: 0.8rem 1rem; overflow-x: auto; background: var(--tint); border-radius: 6px; overflow-wrap: normal; }
.soft { color: var(--soft); }
.counts { display: flex; flex-wrap: wrap; gap: 0.7rem; margin: 1.6rem 0; padding: 0; list-style: none; }
.counts li { flex: 1 1 6rem; padding: 0.7rem 0.8rem; border: 1px solid var(--line); border-left: 5px solid currentColor;
  border-radius: 6px; }
.counts b { display: block; font-size: 1.8rem; line-height: 1.2; }
.holds { color: var(--holds); } .doubt { color: var(--doubt); } .failed { color: var(--failed); }
.against { color: var(--against); }
.missing, .none { color: var(--soft); }
.mark { display: inline-block; flex: none; width: 1.2em; font-weight: 700; text-align: center; }
.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0.15rem 1rem; margin: 1rem 0;
  font-size: 0.92em; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; }
.index h3 { margin: 1.4rem 0 0.3rem; font-size: 1rem; }
.index h3 .soft { font-weight: 400; }
.index ul { columns: 10.5rem; column-gap: 1.2rem; margin: 0; padding: 0; list-style: none; font-size: 0.93em; }
.index li { display: flex; min-width: 0; break-inside: avoid; }
.index a { min-width: 0; color: var(--ink); text-decoration: none; }
.index a:hover { color: var(--accent); text-decoration: underline; }
article { margin: 2rem 0 0; padding: 1.3rem 0 0; border-top: 1px solid var(--line); scroll-margin-top: 0.5rem; }
h2 + article { margin-top: 0.4rem; border-top: 0; }
.verdict { margin: 0.15rem 0 0.8rem; }
.verdict b { font-weight: 650; }
.claim { margin: 0.8rem 0; padding-left: 0.9rem; border-left: 3px solid var(--line); }
figure { margin: 1rem 0; }
figure img { display: block; max-width: 100%; height: auto; }
figure .box { overflow-x: auto; }
figure .box a { display: block; cursor: zoom-in; }
.close { display: none; position: fixed; top: 0.6rem; right: 0.6rem; z-index: 3; padding: 0.3rem 0.9rem; background: #fff;
  border: 1px solid var(--ink); border-radius: 6px; }
figure:target .close { display: block; }
figure:target .box { position: fixed; inset: 0; z-index: 2; overflow: auto; padding: 3.2rem 0.6rem 0.6rem; background: #fff; }
figure:target img { width: max(100%, 75rem); max-width: none; }
figcaption { margin-top: 0.3rem; font-size: 0.88em; }
.table { overflow-x: auto; }
table { overflow-wrap: break-word; width: 100%; border-collapse: collapse; font-size: 0.9em; }
th, td { padding: 0.3rem 0.9rem 0.3rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--soft); font-weight: 500; }
td.name { min-width: 11rem; }
sup { line-height: 0; }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
details { margin: 0.8rem 0; }
summary { cursor: pointer; }
.remark, .contradicts { margin: 1rem 0; padding: 0.7rem 1rem; background: var(--tint); border-radius: 6px; }
.contradicts { background: #fff; border: 1px solid var(--against); border-left-width: 5px; }
.remark b, .contradicts b { display: block; font-size: 0.88em; }
.contradicts b { color: var(--against); }
.error { padding: 0.7rem 1rem; border: 1px solid var(--failed); border-radius: 6px; }
@media (max-width: 30rem) {
  main { padding: 1.3rem 1rem 3rem; }
  .facts { display: block; } .facts dd { margin-bottom: 0.4rem; }
  table { font-size: 0.84em; } th, td { padding-right: 0.5rem; } td.name { min-width: 6.5rem; }
}
@media print { details > * { display: block; } article { break-inside: avoid; } }
"""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""
