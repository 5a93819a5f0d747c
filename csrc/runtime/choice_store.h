// Choices that were made by measuring, kept on disk for the next process.
#pragma once

#include <optional>
#include <string>

#include "backend/backend.h"
#include "ir/graph_hash.h"
#include "runtime/measured_choice.h"

namespace torch_lazy {

// All that a choice depends on, as text: the graph, what it is compiled for, by whom, on which
// processor with how many threads, and which build of this library.
std::string choice_key(const std::string& backend, const GraphHash& hash,
                       const CompileOptions& options);

// None where nothing was measured yet, or nothing may be kept.
std::optional<Choice> recall_choice(const std::string& key);
void remember_choice(const std::string& key, const Choice& choice);

// The text that is kept of a choice, and back; none for what is no such text.
std::string to_string(const Choice& choice);
std::optional<Choice> choice_from_string(const std::string& text);

}  // namespace torch_lazy
