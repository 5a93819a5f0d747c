// Lines and columns of instructions, against what Python itself says of them.

#include "tape/line_table.h"

#include <gtest/gtest.h>
#include <torch/csrc/python_headers.h>

#include <string>

namespace torch_lazy {
namespace {

#if PY_VERSION_HEX >= 0x030B0000

// With calls over several lines, a loop, an exception handler, instructions without a line, a line
// far from its neighbours and columns beyond one byte.
const std::string kProgram = R"(
def f(x):
    for i in range(3):
        try:
            x = g(
                x,
                i,
            )
        except ValueError as error:
            raise error
    with x:
        return [y for y in x if y]
)" + std::string(400, '\n') +
                             "    x = " + std::string(300, ' ') + "x + f(x)\n";

TEST(LineTable, SaysOfEachInstructionWhatPythonSays) {
  if (!Py_IsInitialized()) Py_InitializeEx(0);
  PyObject* const module = Py_CompileString(kProgram.c_str(), "program.py", Py_file_input);
  ASSERT_NE(module, nullptr);
  PyObject* const constants = PyObject_GetAttrString(module, "co_consts");
  PyObject* const function = PyTuple_GetItem(constants, 0);
  ASSERT_TRUE(PyCode_Check(function));
  const auto* const code = reinterpret_cast<PyCodeObject*>(function);
  const std::string table(PyBytes_AsString(code->co_linetable),
                          static_cast<size_t>(PyBytes_Size(code->co_linetable)));
  PyObject* const iterator = PyObject_CallMethod(function, "co_positions", nullptr);
  ASSERT_NE(iterator, nullptr);

  int offset = 0;
  for (; PyObject* const position = PyIter_Next(iterator); offset += 2) {
    PyObject *line, *end_line, *column, *end_column;
    ASSERT_TRUE(PyArg_ParseTuple(position, "OOOO", &line, &end_line, &column, &end_column));
    const LineAndColumn where = line_at(table, code->co_firstlineno, offset);
    EXPECT_EQ(where.line, line == Py_None ? code->co_firstlineno : PyLong_AsLong(line)) << offset;
    EXPECT_EQ(where.column, column == Py_None ? -1 : PyLong_AsLong(column)) << offset;
    Py_DECREF(position);
  }

  EXPECT_GT(offset, 100);
  for (PyObject* object : {iterator, constants, module}) Py_DECREF(object);
}

#endif

TEST(LineTable, AnOffsetOutsideHasTheFirstLine) {
  const std::string one_unit_on_the_next_line = {char(0x80 | 11 << 3), 4, 9};

  EXPECT_EQ(line_at(one_unit_on_the_next_line, 7, 0).line, 8);
  EXPECT_EQ(line_at(one_unit_on_the_next_line, 7, 0).column, 4);
  EXPECT_EQ(line_at(one_unit_on_the_next_line, 7, 2).line, 7);
  EXPECT_EQ(line_at(one_unit_on_the_next_line, 7, -2).line, 7);
}

}  // namespace
}  // namespace torch_lazy
