// NestPrinter's transposes: loads whose memory is contiguous along another dimension than that of
// the lanes.
//
// A work item is a square along both dimensions. The threads load its elements along the one
// (`square_first` + lane), leave them in shared memory, and read them along the other, where the
// results are stored. A square has a column more than it needs, so that neither way has two threads
// of a warp at one bank.

#include "codegen/print_nest.h"

namespace torch_lazy::codegen {

void NestPrinter::print_transposed() {
  const Kernel& kernel = context_.kernel;
  const std::string side = std::to_string(kernel.thread_loop.square);
  const auto transposed = static_cast<size_t>(kernel.thread_loop.transposed);
  const std::string index = context_.index_type();
  const auto print_range = [&](const std::string& prefix, const std::string& number, Size extent) {
    out_.line("const " + index + " " + prefix + "first = " + number + " * " + side + ";");
    out_.line("const " + index + " " + prefix +
              "last = " + least(prefix + "first + " + side, name_of_size(extent)) + ";");
  };
  print_range("", "block", kernel.parallel.back());
  print_range("square_", "square", kernel.parallel[transposed]);
  print_square_loads();
  open_rows_of_square("square_last - square_first");
  out_.line("const " + index + " " + name_of_index(context_, transposed) +
            " = square_first + row;");
  open_columns_of_square();
  out_.line("const " + index + " i = first + lane;");
  out_.line("const int n = i < last;");
  print_work_item_scalars();
  print_tile({0, 1, true});
  close_columns_of_square();
  out_.close();
}

// As many steps as a whole square takes, so that a thread has all its loads under way at once.
void NestPrinter::open_rows_of_square(const std::string& rows) {
  out_.line("#pragma unroll");
  out_.open("for (int step = 0; step < " + std::to_string(context_.kernel.thread_loop.square) +
            "; step += " + std::to_string(ThreadLoop::kRowsOfSquare) + ")");
  out_.line("const int row = step + (int)threadIdx.y;");
  out_.line("if (row >= " + rows + ") break;");
}

// Of a large square a thread has several columns, each under the name of the lane.
void NestPrinter::open_columns_of_square() {
  const ThreadLoop& loop = context_.kernel.thread_loop;
  if (loop.square == ThreadLoop::kColumns) return;
  out_.line("#pragma unroll");
  out_.open("for (int column = 0; column < " + std::to_string(loop.square) +
            "; column += " + std::to_string(ThreadLoop::kColumns) + ")");
  out_.line("const int lane = column + (int)threadIdx.x;");
}

void NestPrinter::close_columns_of_square() {
  if (context_.kernel.thread_loop.square != ThreadLoop::kColumns) out_.close();
}

void NestPrinter::print_square_loads() {
  const Kernel& kernel = context_.kernel;
  const std::string side = std::to_string(kernel.thread_loop.square);
  std::vector<ExprId> loads;
  for (ExprId id : context_.schedule.rows[0]) {
    if (context_.is_transposed(id)) loads.push_back(id);
  }
  for (ExprId id : loads) {
    out_.line(std::string("__shared__ ") + scalar_type(kernel.exprs[id].type) + " " +
              name_of_square(context_, id) + "[" + side + "][" + side + " + 1];");
  }
  out_.line("__syncthreads();");  // all have read the square before
  open_rows_of_square("last - first");
  open_columns_of_square();
  out_.open("if (square_first + lane < square_last)");
  for (ExprId id : loads) {
    const std::string load = std::string("lazy_get_") + name_of(kernel.exprs[id].type);
    out_.line(name_of_square(context_, id) +
              "[row][lane] = " + context_.call(load, {accesses_.transposed_address(id)}) + ";");
  }
  out_.close();
  close_columns_of_square();
  out_.close();
  out_.line("__syncthreads();");
}

}  // namespace torch_lazy::codegen
