// NestPrinter's rows that a block of a GPU holds from one sweep to the next.
//
// Each element stays with one thread. Of a long row a thread's first packets are in its registers,
// the next in shared memory, where it finds them again without a barrier, and what is longer yet is
// loaded by every sweep. Packets of shared memory lie as those of memory do, a step's neighbours
// side by side, so that no two threads of a warp meet at a bank.

#include <set>

#include "codegen/print_nest.h"

namespace torch_lazy::codegen {
void NestPrinter::print_held_row() {
  if (!context_.has_packets() || !context_.kernel.thread_loop.holds_row) return;
  const ThreadLoop& loop = context_.kernel.thread_loop;
  std::set<ExprId> spilled;
  std::vector<ExprId> exprs;
  std::vector<uint32_t> stores;
  for (const Sweep& sweep : context_.schedule.sweeps) {
    exprs.insert(exprs.end(), sweep.exprs.begin(), sweep.exprs.end());
    stores.insert(stores.end(), sweep.stores.begin(), sweep.stores.end());
    spilled.insert(sweep.spilled.begin(), sweep.spilled.end());
  }
  print_packet_start(reduction_, exprs, stores);
  for (ExprId id : spilled) {
    if (loop.packets == 0) break;
    out_.line(std::string(vector_type(context_.kernel.exprs[id].type)) + " m" + std::to_string(id) +
              "[" + std::to_string(loop.packets) + "][" + std::to_string(loop.packet) + "];");
  }
  if (loop.shared_packets == 0) return;
  out_.line("extern __shared__ __align__(16) unsigned char lazy_shared[];");
  int64_t bytes = 0;
  for (ExprId id : spilled) {
    const Type type = context_.kernel.exprs[id].type;
    const std::string pointer = std::string(storage_type(type)) + "*";
    out_.line(pointer + " const k" + std::to_string(id) + " = (" + pointer + ")(lazy_shared + " +
              std::to_string(bytes) + ") + lane * " + std::to_string(loop.packet) + ";");
    bytes += int64_t{bytes_of(type)} * loop.shared_packets * loop.packet * loop.threads;
  }
}

// The packets in registers, those in shared memory, and the rest.
void NestPrinter::print_long_row(const Sweep& sweep, const Reductions& reductions) {
  const ThreadLoop& loop = context_.kernel.thread_loop;
  const auto print_run = [&](const PacketRun& run, const std::vector<ExprId>& loads) {
    held_ = run.held;
    for (const auto& reduction : reductions) reduction.begin_block(out_);
    print_packet_run(reduction_, run, loads, sweep.stores,
                     [&](const Body& body) { print_innermost(sweep, reductions, body); });
    for (const auto& reduction : reductions) reduction.end_block(out_);
  };
  const auto behind = [&](int packets) {
    return "start + " + std::to_string(int64_t{packets} * loop.packet) + " * (int)blockDim.x";
  };
  if (loop.packets > 0) {
    out_.open("");
    print_run({"start", loop.packets, Held::kInRegisters, &sweep}, sweep.exprs);
    out_.close();
  }
  constexpr int kStreamed = ThreadLoop::kStreamedPackets;
  if (loop.shared_packets > 0) {
    out_.line("#pragma unroll 1");
    out_.open("for (int held = 0; held < " + std::to_string(loop.shared_packets) +
              "; held += " + std::to_string(kStreamed) + ")");
    out_.line("const " + context_.index_type() + " base = " + behind(loop.packets) + " + held * (" +
              std::to_string(loop.packet) + " * (int)blockDim.x);");
    out_.line("if (base >= " + reduction_.last + ") break;");
    print_run({"base", kStreamed, Held::kInShared, &sweep}, sweep.exprs);
    out_.close();
  }
  if (loop.has_rest) {
    std::vector<ExprId> loads = sweep.exprs;
    loads.insert(loads.end(), sweep.reloaded.begin(), sweep.reloaded.end());
    out_.line("#pragma unroll 1");
    open_packet_runs(reduction_, behind(loop.packets + loop.shared_packets), kStreamed);
    print_run({"base", kStreamed, Held::kNowhere, &sweep}, loads);
    out_.close();
  }
  held_ = Held::kInRegisters;
}

// Before the elements of a step are evaluated what they read again, behind them what later sweeps
// will read.
void NestPrinter::print_shared_packets(const PacketRun& run, bool before) {
  if (run.held != Held::kInShared) return;
  const std::string packet = std::to_string(context_.kernel.thread_loop.packet);
  const auto move = [&](const char* function, ExprId id) {
    const std::string name =
        std::string("lazy_") + function + "_packet_" + name_of(context_.kernel.exprs[id].type);
    out_.line(context_.call(name, {"k" + std::to_string(id) + " + (held + step) * (" + packet +
                                       " * (int)blockDim.x)",
                                   "y" + std::to_string(id)}) +
              ";");
  };
  const auto declare = [&](ExprId id) {
    out_.line(std::string(vector_type(context_.kernel.exprs[id].type)) + " y" + std::to_string(id) +
              "[" + packet + "];");
  };
  if (!before) {
    for (ExprId id : run.sweep->spilled) move("store", id);
    return;
  }
  for (ExprId id : run.sweep->spilled) declare(id);
  for (ExprId id : run.sweep->reloaded) {
    declare(id);
    move("load", id);
  }
}

// What was evaluated before for an element, or will be read again.
std::string NestPrinter::held_element(ExprId id) const {
  return held_ == Held::kInShared ? "y" + std::to_string(id) + "[j]"
                                  : "m" + std::to_string(id) + "[step][j]";
}

}  // namespace torch_lazy::codegen
