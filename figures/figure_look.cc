// The looks of figures: colours with enough contrast on light and dark paper, each paint with its
// own pattern.
#include "figures/figure.h"

namespace motley {

std::string figure_style() {
  return R"svg(
.figure { font-family: sans-serif; font-size: 12px; }
.figure text { fill: #1c1e21; }
.figure .title { font-size: 16px; font-weight: bold; }
.figure .bold { font-weight: bold; }
.figure .small { font-size: 10px; }
.figure .middle { text-anchor: middle; }
.figure .end { text-anchor: end; }
.figure text.faint { fill: #5a6068; }
.figure text.on-paint { fill: #ffffff; pointer-events: none; }
.figure .paper { fill: #ffffff; }
.figure .lane { fill: #f1f2f4; }
.figure .frame { fill: none; stroke: #8b9199; }
.figure line { stroke: #8b9199; }
.figure line.grid { stroke: #d9dce0; }
.figure line.limit { stroke: #1c1e21; stroke-width: 2; }
.figure .forward { fill: #2f6da8; }
.figure .backward { fill: url(#figure-backward); }
.figure .weights { fill: url(#figure-weights); }
.figure .update { fill: url(#figure-update); }
.figure .codec { fill: url(#figure-codec); }
.figure .wait { fill: #dfe2e6; }
.figure .link { fill: #b5382d; }
.figure .held { fill: #2f6da8; }
.figure .twice { fill: url(#figure-codec); }
.figure .used { fill: url(#figure-update); }
.figure polyline { fill: none; stroke-width: 1.5; stroke: #2f6da8; }
.figure polyline.second { stroke: #a05a00; stroke-dasharray: 6 3; }
.figure polyline.third { stroke: #8a3f80; stroke-dasharray: 2 3; }
.figure circle { fill: #a05a00; }
@media (prefers-color-scheme: dark) {
.figure text { fill: #e8eaed; }
.figure text.faint { fill: #a4abb3; }
.figure text.on-paint { fill: #ffffff; }
.figure .paper { fill: #17191c; }
.figure .lane { fill: #24272b; }
.figure .frame { stroke: #7b828a; }
.figure line { stroke: #7b828a; }
.figure line.grid { stroke: #383c42; }
.figure line.limit { stroke: #e8eaed; }
.figure .wait { fill: #3c4148; }
.figure .link { fill: #e0685c; }
.figure polyline { stroke: #6fb1ee; }
.figure polyline.second { stroke: #f0a848; }
.figure polyline.third { stroke: #d58fca; }
.figure circle { fill: #f0a848; }
}
)svg";
}

std::string figure_patterns() {
  return R"svg(<defs>
<pattern id="figure-backward" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="6" height="6" fill="#1e7a55"/><rect width="1.5" height="6" fill="#56b48e"/></pattern>
<pattern id="figure-weights" width="5" height="5" patternUnits="userSpaceOnUse">
<rect width="5" height="5" fill="#5d7a1f"/><rect x="1" y="1" width="2" height="2" fill="#a9c565"/></pattern>
<pattern id="figure-update" width="5" height="5" patternUnits="userSpaceOnUse">
<rect width="5" height="5" fill="#8a3f80"/><rect width="1.2" height="5" fill="#c07fb6"/></pattern>
<pattern id="figure-codec" width="5" height="5" patternUnits="userSpaceOnUse">
<rect width="5" height="5" fill="#a05a00"/><rect width="5" height="1.2" fill="#e0a050"/></pattern>
</defs>
)svg";
}

}  // namespace motley
