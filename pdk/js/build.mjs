// node pdk/build.mjs MODULE OUT builds the plugin whose functions MODULE exports: it writes build/main.js, which wraps
// them with console.js and guard.js, and has componentize-qjs make the component OUT of it and of the folder wit.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";

const camel = (name) => name.replace(/^%/, "").replace(/-(.)/g, (_, c) => c.toUpperCase());

// readWIT reads as much of WIT as guard.js needs: the types of interfaces, and what worlds export. What it does not know
// is not checked; componentize-qjs reports mistakes.
export function readWIT(source) {
  const tokens = source.match(/\/\/[^\n]*|\/\*[^]*?\*\/|->|%?[A-Za-z][\w-]*|\d[\w.+-]*|\S/g)?.filter((t) => !/^\/[/*]/.test(t)) ?? [];
  let at = 0;
  const peek = () => tokens[at];
  const next = () => tokens[at++];
  const accept = (token) => peek() === token && next() !== undefined;
  // skip reads up to the end of an item: a semicolon, or a block.
  const skip = () => {
    for (let depth = 0; at < tokens.length; ) {
      const token = next();
      if (token === "{") depth++;
      if ((token === "}" && --depth === 0) || (token === ";" && depth === 0)) return;
    }
  };
  // list reads items up to the token end, with commas between.
  const list = (end, item) => {
    const items = [];
    while (at < tokens.length && !accept(end)) {
      items.push(item());
      accept(",");
    }
    return items;
  };
  const type = () => {
    const name = next();
    const inner = accept("<") ? list(">", type) : [];
    if (/^[su](8|16|32|64)$/.test(name)) return { kind: "integer" };
    if (/^(f|float)(32|64)$/.test(name)) return { kind: "float" };
    if (name === "bool") return { kind: "bool" };
    if (name === "string" || name === "char") return { kind: "string" };
    if (name === "list" && inner.length === 1) return { kind: "list", element: inner[0] };
    if (name === "option") return { kind: "option", element: inner[0] };
    if (name === "tuple") return { kind: "tuple", elements: inner };
    if (name === "result") return { kind: "result", element: inner[0]?.name === "_" ? undefined : inner[0] };
    return { kind: "named", name };
  };
  const typed = () => [camel(next()), accept(":") ? type() : undefined];
  const func = () => {
    accept("async");
    accept("func");
    if (accept("(")) list(")", typed);
    const result = accept("->") && peek() !== "(" ? type() : undefined;
    skip();
    return { kind: "func", result };
  };
  const body = () => {
    const scope = { types: {}, functions: {}, exports: [] };
    while (at < tokens.length && !accept("}")) {
      const word = next();
      const name = peek();
      if (word === "@") { // such as @since(version = 1.0.0)
        next();
        if (accept("(")) list(")", next);
      } else if (accept(":")) {
        scope.functions[word] = func();
      } else if (word === "export") {
        next();
        if (accept(":") && tokens[at] !== "interface" && (tokens[at] === "func" || tokens[at] === "async")) {
          scope.functions[name] = func();
          continue;
        }
        if (accept("interface")) {
          accept("{");
          scope.exports.push({ name, body: body() });
          continue;
        }
        const path = [name];
        while (at < tokens.length && peek() !== ";") path.push(next());
        next();
        scope.exports.push({ name: path.join("").replace(/@.*/, "").replace(/.*\//, "") });
      } else if (["record", "variant", "enum", "flags"].includes(word)) {
        next();
        accept("{");
        if (word === "record") scope.types[name] = { kind: "record", fields: Object.fromEntries(list("}", typed)) };
        else if (word === "variant") {
          scope.types[name] = { kind: "variant", cases: Object.fromEntries(list("}", () => {
            const c = next();
            return [c, accept("(") ? list(")", type)[0] : null];
          })) };
        } else scope.types[name] = word === "enum" ? { kind: "enum", cases: list("}", next) } : (list("}", next), { kind: "any" });
      } else if (word === "type") {
        next();
        accept("=");
        scope.types[name] = type();
        skip();
      } else if (word === "use") {
        const path = [];
        while (at < tokens.length && peek() !== "{") path.push(next());
        next();
        const from = path.join("").replace(/\.$/, "").replace(/@.*/, "").replace(/.*\//, "");
        for (const [name, as] of list("}", () => [next(), accept("as") ? next() : undefined])) {
          scope.types[as ?? name] = { kind: "used", from, name };
        }
        skip();
      } else {
        at--;
        skip();
      }
    }
    return scope;
  };
  const interfaces = {}, worlds = [];
  while (at < tokens.length) {
    const word = next();
    if ((word === "interface" || word === "world") && tokens[at + 1] === "{") {
      const name = next();
      next();
      if (word === "world") worlds.push(body());
      else interfaces[name] = body();
    } else if (word === "package") skip();
  }
  return { interfaces, worlds };
}

// resolve replaces the names in a type by what they stand for; depth bounds types that name each other.
function resolve(type, scope, interfaces, depth = 0) {
  const inner = (t) => t && resolve(t, scope, interfaces, depth + 1);
  if (!type || depth > 50) return { kind: "any" };
  switch (type.kind) {
    case "named":
      return Object.hasOwn(scope.types, type.name) ? inner(scope.types[type.name]) : { kind: "any" };
    case "used": {
      const other = interfaces[type.from];
      return other && Object.hasOwn(other.types, type.name) ?
        resolve(other.types[type.name], other, interfaces, depth + 1) : { kind: "any" };
    }
    case "list": case "option":
      return { ...type, element: inner(type.element) };
    case "tuple":
      return { ...type, elements: type.elements.map(inner) };
    case "record":
      return { ...type, fields: Object.fromEntries(Object.entries(type.fields).map(([n, t]) => [n, inner(t)])) };
    case "variant":
      return { ...type, cases: Object.fromEntries(Object.entries(type.cases).map(([n, t]) => [n, inner(t)])) };
    case "result":
      return { kind: "any" };
  }
  return type;
}

// entry returns the source of the module that wraps the functions of another.
export function entry(wit, module) {
  const guarded = (owner, name, scope) => {
    const { result } = scope.functions[name];
    // An error of a result is thrown, so what a function returns is the success.
    const type = result && resolve(result.kind === "result" ? result.element : result, scope, wit.interfaces);
    return `guard(${owner}, ${JSON.stringify(camel(name))}, ${JSON.stringify(type ?? null)})`;
  };
  const lines = ['import "../pdk/console.js";', 'import { guard } from "../pdk/guard.js";',
    `import * as plugin from ${JSON.stringify(module)};`];
  for (const world of wit.worlds) {
    for (const name of Object.keys(world.functions)) {
      lines.push(`export const ${camel(name)} = ${guarded("plugin", name, world)};`);
    }
    for (const exported of world.exports) {
      const scope = exported.body ?? wit.interfaces[exported.name], name = camel(exported.name), owner = `plugin.${name}`;
      const functions = scope ? Object.keys(scope.functions).map((f) => `${camel(f)}: ${guarded(owner, f, scope)}`) : [];
      lines.push(`export const ${name} = { ...${owner}, ${functions.join(", ")} };`);
    }
  }
  return lines.join("\n") + "\n";
}

function main(module, out) {
  const files = readdirSync("wit").filter((file) => file.endsWith(".wit"));
  const wit = readWIT(files.map((file) => readFileSync(join("wit", file), "utf8")).join("\n"));
  mkdirSync("build", { recursive: true });
  writeFileSync("build/main.js", entry(wit, posix.join("..", module)));
  const command = join("node_modules", "componentize-qjs", "cli.mjs");
  const { status } = spawnSync(process.execPath, [command, "--sync", "--wit", "wit", "--js", "build/main.js", "-o", out],
    { stdio: "inherit" });
  process.exitCode = status ?? 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(...process.argv.slice(2));
