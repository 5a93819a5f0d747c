// NestPrinter's packets: neighbouring elements that a thread of a GPU loads and stores by one
// instruction.
//
// A thread has `packets` times `packet` elements in a step of the lanes' loop. Where every packet
// of the step begins at a multiple of its size, the thread's elements are neighbours (`packed`);
// elsewhere they lie `apart`, one for each thread between, so that the threads of a warp touch
// memory in one piece either way. Rows that all begin `shift` elements behind such a multiple are
// packed too: their first packet begins before the row.

#include <set>

#include "codegen/print_nest.h"

namespace torch_lazy::codegen {
std::vector<ExprId> NestPrinter::packet_loads(const std::vector<ExprId>& exprs) const {
  std::vector<ExprId> loads;
  for (ExprId id : exprs) {
    if (context_.is_packet(id)) loads.push_back(id);
  }
  return loads;
}

std::vector<uint32_t> NestPrinter::packet_stores(const std::vector<uint32_t>& stores) const {
  std::vector<uint32_t> packets;
  for (uint32_t number : stores) {
    if (context_.is_packet(context_.kernel.stores[number])) packets.push_back(number);
  }
  return packets;
}

void NestPrinter::print_packet_start(const Range& range, const std::vector<ExprId>& exprs,
                                     const std::vector<uint32_t>& stores) {
  const Kernel& kernel = context_.kernel;
  const std::string packet = std::to_string(kernel.thread_loop.packet);
  std::set<std::string> offsets;
  const auto add = [&](uint32_t buffer, const Access& access) {
    offsets.insert(context_.call("lazy_offset_in_packet",
                                 {accesses_.address_at(buffer, access, range.first), packet}));
  };
  for (ExprId id : packet_loads(exprs)) add(kernel.exprs[id].buffer, kernel.exprs[id].access);
  for (uint32_t number : packet_stores(stores)) {
    add(kernel.stores[number].buffer, kernel.stores[number].access);
  }
  std::string packed;
  const auto require = [&](const std::string& condition) {
    packed += (packed.empty() ? "" : " && ") + condition;
  };
  for (const std::string& offset : offsets) {
    if (offset == *offsets.begin()) {
      out_.line("const int shift = " + offset + ";");
    } else {
      require(offset + " == shift");
    }
  }
  if (offsets.empty()) out_.line("const int shift = 0;");
  if (kernel.thread_loop.holds_row) {
    const ThreadLoop& loop = kernel.thread_loop;
    const int64_t elements = int64_t{loop.packet} * (loop.packets + loop.shared_packets);
    if (!loop.has_rest)
      require(range.last + " - " + range.first + " + shift <= " + std::to_string(elements) +
              " * (int)blockDim.x");
  }
  const std::string index = "const " + context_.index_type() + " ";
  out_.line("const bool packed = " + (packed.empty() ? "true" : packed) + ";");
  out_.line("const int apart = packed ? 1 : blockDim.x;");
  out_.line(index + "start = " + range.first + " + (packed ? lane * " + packet +
            " - shift : lane);");
}

void NestPrinter::open_packet_steps(const Range& range, const PacketRun& run) {
  const ThreadLoop& loop = context_.kernel.thread_loop;
  out_.line("#pragma unroll");
  out_.open("for (int step = 0; step < " + std::to_string(run.packets) + "; ++step)");
  out_.line("const " + context_.index_type() + " at = " + run.start + " + step * (" +
            std::to_string(loop.packet) + " * (int)blockDim.x);");
  out_.line("const bool whole = packed && at >= " + range.first + " && at + " +
            std::to_string(loop.packet) + " <= " + range.last + ";");
}

void NestPrinter::print_packet_call(const std::string& what, Type type, const std::string& address,
                                    const std::string& packet, bool whole, const Range& range) {
  const std::string of_type = std::string("_") + name_of(type);
  out_.line((whole ? context_.call("lazy_" + what + "_packet" + of_type, {address, packet})
                   : context_.call(
                         "lazy_" + what + "_apart" + of_type,
                         {address, "apart", range.first + " - at", range.last + " - at", packet})) +
            ";");
}

void NestPrinter::print_packet_loads(const Range& range, const PacketRun& run,
                                     const std::vector<ExprId>& loads) {
  if (loads.empty()) return;
  const Kernel& kernel = context_.kernel;
  const ThreadLoop& loop = kernel.thread_loop;
  for (ExprId id : loads) {
    out_.line(std::string(vector_type(kernel.exprs[id].type)) + " " +
              name_of_loaded_packet(context_, id) + "[" + std::to_string(run.packets) + "][" +
              std::to_string(loop.packet) + "];");
  }
  open_packet_steps(range, run);
  for (const bool whole : {true, false}) {
    out_.open(whole ? "if (whole)" : "else");
    for (ExprId id : loads) {
      const Expr& load = kernel.exprs[id];
      print_packet_call("load", load.type, accesses_.address_at(load.buffer, load.access, "at"),
                        name_of_loaded_packet(context_, id) + "[step]", whole, range);
    }
    out_.close();
  }
  out_.close();
}

void NestPrinter::print_packet_stores(const Range& range, const std::vector<uint32_t>& stores) {
  if (stores.empty()) return;
  const Kernel& kernel = context_.kernel;
  for (const bool whole : {true, false}) {
    out_.open(whole ? "if (whole)" : "else");
    for (uint32_t number : stores) {
      const Store& store = kernel.stores[number];
      print_packet_call(context_.is_rounded_by_stores(store.expr) ? "store_rounded" : "store",
                        kernel.buffers[store.buffer].type,
                        accesses_.address_at(store.buffer, store.access, "at"),
                        name_of_stored_packet(context_, store), whole, range);
    }
    out_.close();
  }
}

void NestPrinter::print_packet_run(const Range& range, const PacketRun& run,
                                   const std::vector<ExprId>& loads,
                                   const std::vector<uint32_t>& stores,
                                   const PrintBody& print_body) {
  const Kernel& kernel = context_.kernel;
  const std::string packet = std::to_string(kernel.thread_loop.packet);
  const std::vector<uint32_t> stored = packet_stores(stores);
  print_packet_loads(range, run, packet_loads(loads));
  open_packet_steps(range, run);
  for (uint32_t number : stored) {
    const Store& store = kernel.stores[number];
    out_.line(std::string(vector_type(kernel.buffers[store.buffer].type)) + " " +
              name_of_stored_packet(context_, store) + "[" + packet + "];");
  }
  print_shared_packets(run, true);
  out_.line("#pragma unroll");
  out_.open("for (int j = 0; j < " + packet + "; ++j)");
  out_.line("const " + context_.index_type() + " i = at + j * apart;");
  out_.line("const int n = i >= " + range.first + " && i < " + range.last + ";");
  print_body({0, 1, true});
  out_.close();
  print_shared_packets(run, false);
  print_packet_stores(range, stored);
  out_.close();
}

void NestPrinter::open_packet_runs(const Range& range, const std::string& start, int packets) {
  out_.open("for (" + context_.index_type() + " base = " + start + "; base < " + range.last +
            "; base += " + std::to_string(int64_t{context_.kernel.thread_loop.packet} * packets) +
            " * (int)blockDim.x)");
}

void NestPrinter::print_packets(const Range& range, const std::vector<ExprId>& exprs,
                                const std::vector<uint32_t>& stores, const PrintBody& print_body) {
  const ThreadLoop& loop = context_.kernel.thread_loop;
  out_.open("");
  if (!loop.holds_row) {
    print_packet_start(range, exprs, stores);
    open_packet_runs(range, "start", loop.packets);
  }
  print_packet_run(range, {loop.holds_row ? "start" : "base", loop.packets}, exprs, stores,
                   print_body);
  if (!loop.holds_row) out_.close();
  out_.close();
}

}  // namespace torch_lazy::codegen
