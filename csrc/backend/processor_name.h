// What the machine's processor is called.
#pragma once

#include <string>

namespace torch_lazy {

// As the processor itself says it ("AMD EPYC 9B14"); where the system does not tell, the
// architecture ("x86_64").
std::string processor_name();

}  // namespace torch_lazy
