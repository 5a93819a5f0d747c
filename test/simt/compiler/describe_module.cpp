#include "simt/compiler/describe_module.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <set>
#include <string>

namespace torch_lazy::simt {
namespace {

// Constant structures and arrays of a module.
class Data {
 public:
  explicit Data(llvm::Module& module) : module_(module), builder_(module.getContext()) {}

  llvm::Constant* number(int64_t value) { return builder_.getInt64(value); }
  llvm::Constant* small_number(int32_t value) { return builder_.getInt32(value); }
  llvm::Constant* text(llvm::StringRef value) {
    return variable(llvm::ConstantDataArray::getString(module_.getContext(), value));
  }
  llvm::Constant* generic(llvm::Constant* pointer) {
    return llvm::ConstantExpr::getPointerBitCastOrAddrSpaceCast(pointer, builder_.getPtrTy());
  }
  static llvm::Constant* structure(llvm::LLVMContext& context,
                                   llvm::ArrayRef<llvm::Constant*> fields) {
    return llvm::ConstantStruct::getAnon(context, fields);
  }
  llvm::Constant* structure(llvm::ArrayRef<llvm::Constant*> fields) {
    return structure(module_.getContext(), fields);
  }
  // The address of the elements, null where there are none.
  llvm::Constant* array(llvm::ArrayRef<llvm::Constant*> elements) {
    if (elements.empty()) return llvm::ConstantPointerNull::get(builder_.getPtrTy());
    return variable(llvm::ConstantArray::get(
        llvm::ArrayType::get(elements.front()->getType(), elements.size()), elements));
  }
  llvm::GlobalVariable* variable(llvm::Constant* value) {
    // Not constant: it holds addresses, which are known when the module is loaded.
    return new llvm::GlobalVariable(module_, value->getType(), false,
                                    llvm::GlobalValue::InternalLinkage, value, "simt_data");
  }

 private:
  llvm::Module& module_;
  llvm::IRBuilder<> builder_;
};

// KernelEntry::run.
llvm::Function* entry_of(llvm::Function& kernel) {
  llvm::IRBuilder<> builder(kernel.getContext());
  auto* type = llvm::FunctionType::get(builder.getVoidTy(), {builder.getPtrTy()}, false);
  auto* entry = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                                       "simt_run_" + kernel.getName(), kernel.getParent());
  builder.SetInsertPoint(llvm::BasicBlock::Create(kernel.getContext(), "", entry));
  std::vector<llvm::Value*> arguments;
  for (llvm::Argument& parameter : kernel.args()) {
    llvm::Value* slot =
        builder.CreateConstGEP1_64(builder.getPtrTy(), entry->getArg(0), parameter.getArgNo());
    llvm::Value* address = builder.CreateLoad(builder.getPtrTy(), slot);
    arguments.push_back(
        parameter.hasByValAttr() ? address : builder.CreateLoad(parameter.getType(), address));
  }
  llvm::CallInst* call = builder.CreateCall(&kernel, arguments);
  call->setAttributes(kernel.getAttributes());  // what is passed by value
  builder.CreateRetVoid();
  return entry;
}

void add_users(const llvm::Value& value, std::set<const llvm::Function*>& functions) {
  for (const llvm::User* user : value.users()) {
    if (const auto* instruction = llvm::dyn_cast<llvm::Instruction>(user)) {
      functions.insert(instruction->getFunction());
    } else {
      add_users(*user, functions);
    }
  }
}

// The name of the one function that uses the variable; empty where it is not one.
llvm::StringRef only_user(const llvm::GlobalVariable& variable) {
  std::set<const llvm::Function*> functions;
  add_users(variable, functions);
  return functions.size() == 1 ? (*functions.begin())->getName() : "";
}

std::vector<llvm::Constant*> shared_variables(llvm::Module& module, Data& data) {
  std::vector<llvm::GlobalVariable*> shared;
  for (llvm::GlobalVariable& global : module.globals()) {
    if (global.getAddressSpace() == kSharedSpace) shared.push_back(&global);
  }
  std::vector<llvm::Constant*> entries;
  for (llvm::GlobalVariable* global : shared) {
    const bool dynamic = global->isDeclaration();
    const llvm::MaybeAlign alignment = global->getAlign();
    if (dynamic) {
      auto* bytes =
          llvm::ArrayType::get(llvm::Type::getInt8Ty(module.getContext()), kMostSharedBytes);
      auto* most =
          new llvm::GlobalVariable(module, bytes, false, llvm::GlobalValue::InternalLinkage,
                                   llvm::ConstantAggregateZero::get(bytes), "", nullptr,
                                   llvm::GlobalValue::NotThreadLocal, kSharedSpace);
      most->takeName(global);
      global->replaceAllUsesWith(most);
      global->eraseFromParent();
      global = most;
    }
    global->setInitializer(llvm::Constant::getNullValue(global->getValueType()));
    global->setLinkage(llvm::GlobalValue::InternalLinkage);
    global->setAlignment(std::max(alignment.valueOrOne(), llvm::Align(dynamic ? 16 : 1)));
    const uint64_t bytes = module.getDataLayout().getTypeAllocSize(global->getValueType());
    entries.push_back(
        data.structure({data.text(global->getName()), data.generic(global), data.number(bytes),
                        data.number(global->getAlign().valueOrOne().value()),
                        data.number(dynamic ? 1 : 0), data.text(only_user(*global))}));
  }
  return entries;
}

}  // namespace

std::vector<llvm::Function*> kernels_of(const llvm::Module& module) {
  std::vector<llvm::Function*> kernels;
  const llvm::NamedMDNode* annotations = module.getNamedMetadata("nvvm.annotations");
  if (annotations == nullptr) return kernels;
  for (const llvm::MDNode* node : annotations->operands()) {
    const auto* what = llvm::dyn_cast_or_null<llvm::MDString>(node->getOperand(1));
    if (what == nullptr || what->getString() != "kernel") continue;
    kernels.push_back(llvm::mdconst::extract<llvm::Function>(node->getOperand(0)));
  }
  return kernels;
}

void describe_module(llvm::Module& module, const std::vector<llvm::Function*>& kernels,
                     const std::vector<Site>& sites) {
  Data data(module);
  std::vector<llvm::Constant*> site_entries, kernel_entries;
  for (const Site& site : sites) {
    site_entries.push_back(data.structure(
        {data.small_number(site.line), data.small_number(site.bytes),
         data.small_number(site.alignment), data.small_number(static_cast<int32_t>(site.kind))}));
  }
  for (llvm::Function* kernel : kernels) {
    std::vector<llvm::Constant*> bytes;
    for (const llvm::Argument& parameter : kernel->args()) {
      llvm::Type* type =
          parameter.hasByValAttr() ? parameter.getParamByValType() : parameter.getType();
      bytes.push_back(data.number(module.getDataLayout().getTypeAllocSize(type)));
    }
    kernel_entries.push_back(
        data.structure({data.text(kernel->getName()), entry_of(*kernel), data.array(bytes),
                        data.number(static_cast<int64_t>(bytes.size()))}));
  }
  const std::vector<llvm::Constant*> shared_entries = shared_variables(module, data);
  llvm::GlobalVariable* table = data.variable(
      data.structure({data.array(site_entries), data.array(shared_entries),
                      data.array(kernel_entries), data.number(static_cast<int64_t>(sites.size())),
                      data.number(static_cast<int64_t>(shared_entries.size())),
                      data.number(static_cast<int64_t>(kernels.size()))}));
  table->setName(kModuleSymbol);
  table->setLinkage(llvm::GlobalValue::ExternalLinkage);
}

}  // namespace torch_lazy::simt
