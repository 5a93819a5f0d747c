// Lines of source with indentation.
#pragma once

#include <string>

namespace torch_lazy::codegen {

class SourceWriter {
 public:
  void line(const std::string& text) {
    source_.append(2 * depth_, ' ');
    source_ += text;
    source_ += '\n';
  }
  // `head` ends before the brace.
  void open(const std::string& head) {
    line(head.empty() ? "{" : head + " {");
    ++depth_;
  }
  void close(const std::string& tail = "") {
    --depth_;
    line("}" + tail);
  }
  std::string take() { return std::move(source_); }

 private:
  std::string source_;
  size_t depth_ = 0;
};

}  // namespace torch_lazy::codegen
