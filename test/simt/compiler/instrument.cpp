#include "simt/compiler/instrument.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "simt/compiler/describe_module.h"

namespace torch_lazy::simt {
namespace {

// PTX that kernels hold, and functions of the emulator that do the same.
struct Assembly {
  const char* text;
  const char* function;
};
constexpr Assembly kAssemblies[] = {
    {"cvt.f32.f16 $0, $1;", "simt_float_of_half"},
    {"cvt.rn.f16.f32 $0, $1;", "simt_half_of_float"},
    {"cvt.rn.f16x2.f32 $0, $1, $2;", "simt_halves_of_floats"},
    {"cvt.rn.bf16x2.f32 $0, $1, $2;", "simt_bfloat16s_of_floats"},
    {"max.NaN.f32 $0, $1, $2;", "simt_greater_or_nan"},
    {"min.NaN.f32 $0, $1, $2;", "simt_less_or_nan"},
    {"rcp.approx.ftz.f32 $0, $1;", "simt_nearly_reciprocal"},
};

// The line in the source as it was given: of the outermost call.
int32_t line_of(const llvm::Instruction& instruction) {
  const llvm::DILocation* location = instruction.getDebugLoc();
  if (location == nullptr) return 0;
  while (location->getInlinedAt() != nullptr) location = location->getInlinedAt();
  return static_cast<int32_t>(location->getLine());
}

// As a device's.
constexpr int32_t kWidestAccess = 16;

// Whether the memory is a thread's own: variables, parameters, and constants.
bool is_local(const llvm::Value* pointer) {
  const llvm::Value* object = llvm::getUnderlyingObject(pointer, 0);
  if (llvm::isa<llvm::AllocaInst>(object)) return true;
  if (const auto* argument = llvm::dyn_cast<llvm::Argument>(object)) {
    return argument->hasByValAttr() || argument->hasStructRetAttr();
  }
  const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(object);
  return global != nullptr && global->getAddressSpace() != kSharedSpace;
}

class Instrumenter {
 public:
  explicit Instrumenter(llvm::Module& module) : module_(module), builder_(module.getContext()) {}

  bool run(std::string& error) {
    for (llvm::Function& function : module_) {
      std::vector<llvm::Instruction*> instructions;
      for (llvm::Instruction& instruction : llvm::instructions(function)) {
        instructions.push_back(&instruction);
      }
      for (llvm::Instruction* instruction : instructions) {
        if (auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(instruction)) {
          if (!expand(*copy, error)) return false;
        } else if (auto* fill = llvm::dyn_cast<llvm::MemSetInst>(instruction)) {
          if (is_local(fill->getDest())) continue;
          error = "line " + std::to_string(line_of(*fill)) +
                  ": the emulator takes no memset of memory that threads share";
          return false;
        } else if (auto* call = llvm::dyn_cast<llvm::CallInst>(instruction)) {
          if (!replace(*call, error)) return false;
        } else if (auto* cast = llvm::dyn_cast<llvm::FPToUIInst>(instruction)) {
          saturate(*cast);
        } else {
          instrument(*instruction);
        }
      }
    }
    for (const Site& site : sites_) {
      if (site.bytes <= kWidestAccess) continue;
      error = "line " + std::to_string(site.line) + ": the emulator takes no access of more than " +
              std::to_string(kWidestAccess) + " bytes";
      return false;
    }
    return true;
  }

  std::vector<Site> take_sites() { return std::move(sites_); }

 private:
  llvm::ConstantInt* new_site(const llvm::Instruction& at, uint64_t bytes, uint64_t alignment,
                              SiteKind kind) {
    sites_.push_back(
        {line_of(at), static_cast<int32_t>(bytes), static_cast<int32_t>(alignment), kind});
    return builder_.getInt32(static_cast<uint32_t>(sites_.size() - 1));
  }

  void instrument(llvm::Instruction& instruction) {
    // What is not aligned is reported, and must not fault.
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
      if (!is_local(load->getPointerOperand())) load->setAlignment(llvm::Align(1));
      instrument(instruction, load->getPointerOperandIndex(), load->getType(), SiteKind::kLoad);
    } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
      if (!is_local(store->getPointerOperand())) store->setAlignment(llvm::Align(1));
      instrument(instruction, store->getPointerOperandIndex(), store->getValueOperand()->getType(),
                 SiteKind::kStore);
    } else if (auto* change = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
      instrument(instruction, change->getPointerOperandIndex(), change->getType(),
                 SiteKind::kAtomic);
    } else if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
      instrument(instruction, exchange->getPointerOperandIndex(),
                 exchange->getCompareOperand()->getType(), SiteKind::kAtomic);
    }
  }

  // A device accesses memory at multiples of the access's size, whatever the type's alignment.
  void instrument(llvm::Instruction& instruction, unsigned operand, llvm::Type* type,
                  SiteKind kind) {
    llvm::Value* pointer = instruction.getOperand(operand);
    if (is_local(pointer)) return;
    const uint64_t bytes = module_.getDataLayout().getTypeStoreSize(type);
    builder_.SetInsertPoint(&instruction);
    llvm::Type* generic = builder_.getPtrTy();
    const llvm::FunctionCallee access = module_.getOrInsertFunction(
        "simt_access", llvm::FunctionType::get(generic, {generic, builder_.getInt32Ty()}, false));
    llvm::Value* address = builder_.CreatePointerBitCastOrAddrSpaceCast(pointer, generic);
    instruction.setOperand(
        operand, builder_.CreateCall(access, {address, new_site(instruction, bytes, bytes, kind)}));
  }

  // A copy of a structure becomes loads and stores as wide as its alignment allows, up to 16 bytes:
  // what a device makes of it.
  bool expand(llvm::MemTransferInst& copy, std::string& error) {
    const bool from_local = is_local(copy.getSource());
    const bool to_local = is_local(copy.getDest());
    if (from_local && to_local) return true;
    const auto* length = llvm::dyn_cast<llvm::ConstantInt>(copy.getLength());
    if (length == nullptr || length->getZExtValue() > 256) {
      error = "line " + std::to_string(line_of(copy)) +
              ": the emulator takes copies of at most 256 bytes, of a size known in the source";
      return false;
    }
    const llvm::Align aligned =
        std::min(from_local ? llvm::Align(16) : copy.getSourceAlign().valueOrOne(),
                 to_local ? llvm::Align(16) : copy.getDestAlign().valueOrOne());
    const uint64_t widest = std::min<uint64_t>(aligned.value(), 16);
    for (uint64_t at = 0, bytes = 0; at < length->getZExtValue(); at += bytes) {
      bytes = widest;
      while (bytes > length->getZExtValue() - at) bytes /= 2;
      // Of vectors, which no later pass takes apart.
      llvm::Type* type = bytes > 8 ? llvm::FixedVectorType::get(builder_.getInt64Ty(), 2)
                                   : static_cast<llvm::Type*>(builder_.getIntNTy(8 * bytes));
      const auto piece = [&](llvm::Value* of) {
        return builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), of, at);
      };
      builder_.SetInsertPoint(&copy);
      auto* load = builder_.CreateAlignedLoad(type, piece(copy.getRawSource()), llvm::Align(1));
      auto* store = builder_.CreateAlignedStore(load, piece(copy.getRawDest()), llvm::Align(1));
      instrument(*load);
      instrument(*store);
    }
    copy.eraseFromParent();
    return true;
  }

  bool replace(llvm::CallInst& call, std::string& error) {
    if (const llvm::Function* callee = call.getCalledFunction()) {
      if (callee->getName() != "simt_site") return true;
      call.replaceAllUsesWith(new_site(call, 0, 1, SiteKind::kSynchronization));
      call.eraseFromParent();
      return true;
    }
    const auto* assembly = llvm::dyn_cast<llvm::InlineAsm>(call.getCalledOperand());
    if (assembly == nullptr) return true;
    const auto* known =
        std::find_if(std::begin(kAssemblies), std::end(kAssemblies),
                     [&](const Assembly& entry) { return assembly->getAsmString() == entry.text; });
    if (known == std::end(kAssemblies)) {
      error = "line " + std::to_string(line_of(call)) + ": the emulator does not know the PTX \"" +
              assembly->getAsmString() + "\"; add it to kAssemblies in instrument.cpp";
      return false;
    }
    builder_.SetInsertPoint(&call);
    const llvm::FunctionCallee function =
        module_.getOrInsertFunction(known->function, call.getFunctionType());
    const std::vector<llvm::Value*> arguments(call.arg_begin(), call.arg_end());
    call.replaceAllUsesWith(builder_.CreateCall(function, arguments));
    call.eraseFromParent();
    return true;
  }

  // As PTX does, which has no conversion to fewer than 32 bits: what is negative is 0.
  void saturate(llvm::FPToUIInst& cast) {
    builder_.SetInsertPoint(&cast);
    llvm::Type* const type = cast.getType();
    llvm::Type* const wide = type->getIntegerBitWidth() < 32 ? builder_.getInt32Ty() : type;
    llvm::Value* const whole = builder_.CreateIntrinsic(
        llvm::Intrinsic::fptoui_sat, {wide, cast.getOperand(0)->getType()}, {cast.getOperand(0)});
    cast.replaceAllUsesWith(builder_.CreateTrunc(whole, type));
    cast.eraseFromParent();
  }

  llvm::Module& module_;
  llvm::IRBuilder<> builder_;
  std::vector<Site> sites_;
};

// Nothing of the GPU's stays: the layout of data is the same but for what no kernel has.
void retarget(llvm::Module& module, llvm::TargetMachine& machine) {
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
  for (llvm::Function& function : module) {
    function.removeFnAttr("target-cpu");
    function.removeFnAttr("target-features");
    function.setCallingConv(llvm::CallingConv::C);
  }
}

}  // namespace

bool instrument(llvm::Module& module, llvm::TargetMachine& machine, std::string& error) {
  const std::vector<llvm::Function*> kernels = kernels_of(module);
  retarget(module, machine);
  Instrumenter instrumenter(module);
  if (!instrumenter.run(error)) return false;
  describe_module(module, kernels, instrumenter.take_sites());
  return true;
}

}  // namespace torch_lazy::simt
