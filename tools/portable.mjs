// Runs tools/portable.py in the CPython of pyodide. Arguments: the folder that has the npm package
// and, in `packages`, pytest; then what pytest is told.
import { readdirSync, readFileSync, existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join, dirname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [given, ...told] = process.argv.slice(2);
const home = resolve(given);
const tree = dirname(dirname(fileURLToPath(import.meta.url)));
const found = createRequire(join(home, "from.js")).resolve("pyodide");
const { loadPyodide } = await import(pathToFileURL(join(dirname(found), "pyodide.mjs")));
const python = await loadPyodide();
for (const [set, to] of [["setStdout", process.stdout], ["setStderr", process.stderr]])
  python[set]({ write: (bytes) => (to.write(Buffer.from(bytes)), bytes.length) });

function copy(from, to) {
  if (!existsSync(from) || from.endsWith("__pycache__")) return;
  if (statSync(from).isFile()) return python.FS.writeFile(to, readFileSync(from));
  python.FS.mkdirTree(to);
  for (const name of readdirSync(from)) copy(join(from, name), `${to}/${name}`);
}

for (const name of ["src", "tests", "docs", "examples", "tools", "pyproject.toml", "README.md"])
  copy(join(tree, name), `/home/ebbflow/${name}`);
copy(join(home, "packages"), "/packages");
python.globals.set("told", python.toPy(told));
process.exitCode = python.runPython(`
import os, sys
os.chdir("/home/ebbflow")
sys.dont_write_bytecode = True
sys.path[:0] = ["/home/ebbflow/src", "/home/ebbflow/tools", "/packages"]
from portable import main
main(told)
`);
