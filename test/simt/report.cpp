#include "simt/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace torch_lazy::simt {

bool Report::has(Defect defect) const {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.defect == defect; });
}

std::string Report::text() const {
  std::string text;
  for (const Finding& finding : findings) {
    text += finding.text;
    if (finding.times > 1) text += fmt::format(" (and {} times more)", finding.times - 1);
    text += '\n';
  }
  return text;
}

}  // namespace torch_lazy::simt
