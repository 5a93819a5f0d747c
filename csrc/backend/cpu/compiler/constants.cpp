#include "backend/cpu/compiler/constants.h"

#include <dlfcn.h>
#include <link.h>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

namespace torch_lazy::compiler {
namespace {

// The machine code of the function, as long as the library says that it is; empty where it does
// not.
llvm::ArrayRef<uint8_t> code_of(const void* function) {
#if defined(__GLIBC__)
  Dl_info info{};
  void* entry = nullptr;
  if (dladdr1(function, &info, &entry, RTLD_DL_SYMENT) == 0 || entry == nullptr ||
      info.dli_saddr != function)
    return {};
  return {static_cast<const uint8_t*>(function), static_cast<const ElfW(Sym)*>(entry)->st_size};
#else
  return {};
#endif
}

// Once for each function: what reads instructions takes a millisecond to be made.
bool is_first(const void* function) {
  static std::mutex mutex;  // guards `known`
  static std::unordered_set<const void*> known;
  const std::lock_guard lock(mutex);
  return known.insert(function).second;
}

// An address that is none, as of data taken for code, is an error to the system and no harm.
void map_page_of(const uint8_t* data) {
#if defined(MADV_POPULATE_READ)
  static const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const uint8_t* const page = data - reinterpret_cast<uintptr_t>(data) % page_bytes;
  static_cast<void>(madvise(const_cast<uint8_t*>(page), page_bytes, MADV_POPULATE_READ));
#endif
}

}  // namespace

void map_constants_of(const void* function) {
  if (!is_first(function)) return;
  const llvm::ArrayRef<uint8_t> code = code_of(function);
  if (code.empty()) return;
  static const bool initialized =
      !llvm::InitializeNativeTarget() && !llvm::InitializeNativeTargetDisassembler();
  const std::string name = llvm::sys::getProcessTriple();
  std::string error;
  const llvm::Target* const target =
      initialized ? llvm::TargetRegistry::lookupTarget(name, error) : nullptr;
  if (target == nullptr) return;
  const std::unique_ptr<llvm::MCRegisterInfo> registers(target->createMCRegInfo(name));
  const std::unique_ptr<llvm::MCAsmInfo> assembly(
      target->createMCAsmInfo(*registers, name, llvm::MCTargetOptions()));
  const std::unique_ptr<llvm::MCSubtargetInfo> machine(
      target->createMCSubtargetInfo(name, llvm::sys::getHostCPUName(), ""));
  const std::unique_ptr<llvm::MCInstrInfo> instructions(target->createMCInstrInfo());
  const std::unique_ptr<llvm::MCInstrAnalysis> analysis(
      target->createMCInstrAnalysis(instructions.get()));
  llvm::MCContext context(llvm::Triple(name), assembly.get(), registers.get(), machine.get());
  const std::unique_ptr<llvm::MCDisassembler> disassembler(
      target->createMCDisassembler(*machine, context));
  if (analysis == nullptr || disassembler == nullptr) return;
  uint64_t bytes = 0;
  for (uint64_t at = 0; at < code.size(); at += bytes == 0 ? 1 : bytes) {
    const uint64_t address = reinterpret_cast<uintptr_t>(code.data()) + at;
    llvm::MCInst instruction;
    if (disassembler->getInstruction(instruction, bytes, code.slice(at), address, llvm::nulls()) !=
        llvm::MCDisassembler::Success)
      continue;
    if (const auto constant =
            analysis->evaluateMemoryOperandAddress(instruction, machine.get(), address, bytes))
      map_page_of(code.data() + at + static_cast<int64_t>(*constant - address));
  }
}

}  // namespace torch_lazy::compiler
