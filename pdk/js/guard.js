// guard wraps the function name of owner, an object with the functions of the plugin, for export. An exception is logged
// with its stack, and a result that does not fit its type in WIT is an exception that names the field.
export function guard(owner, name, type) {
  const f = owner?.[name];
  if (typeof f !== "function") {
    const has = Object.keys(owner ?? {}).filter((key) => typeof owner[key] === "function");
    throw new Error(`wit/world.wit exports the function ${name}, and the plugin has none of that name: it has ` +
      (has.join(", ") || "none"));
  }
  return (...args) => {
    let value;
    try {
      value = f.apply(owner, args);
    } catch (error) {
      if (error instanceof Error) console.error(error);
      throw error;
    }
    const misfit = type && !(value instanceof Promise) && check(type, value, "the result");
    if (misfit) throw new TypeError(`${name}: ${misfit}`);
    return value;
  };
}

// check returns what is wrong with a value of a type, as build.mjs describes types, or undefined.
export function check(type, value, path) {
  const wrong = (want) => `${path} must be ${want}, not ${shown(value)}`;
  const inside = (members) => {
    for (const [type, value, path] of members) {
      const misfit = check(type, value, path);
      if (misfit) return misfit;
    }
  };
  switch (type.kind) {
    case "bool":
      return typeof value === "boolean" ? undefined : wrong("true or false");
    case "integer":
      return Number.isInteger(value) || typeof value === "bigint" ? undefined : wrong("an integer");
    case "float":
      return typeof value === "number" ? undefined : wrong("a number");
    case "string":
      return typeof value === "string" ? undefined : wrong("a text");
    case "enum":
      return type.cases.includes(value) ? undefined : wrong(`one of ${type.cases.join(", ")}`);
    case "list":
      if (value instanceof Uint8Array) return undefined;
      if (!Array.isArray(value)) return wrong("an array");
      return inside(value.map((v, i) => [type.element, v, `${path}[${i}]`]));
    case "tuple":
      if (!Array.isArray(value) || value.length !== type.elements.length) {
        return wrong(`an array of ${type.elements.length}`);
      }
      return inside(value.map((v, i) => [type.elements[i], v, `${path}[${i}]`]));
    case "option":
      return value == null || type.element.kind === "option" ? undefined : check(type.element, value, path);
    case "record":
      if (typeof value !== "object" || value === null) return wrong("an object");
      return inside(Object.entries(type.fields).map(([name, t]) => [t, value[name], `${path}.${name}`]));
    case "variant": {
      if (!Object.hasOwn(type.cases, value?.tag)) {
        return wrong(`an object with a tag, one of ${Object.keys(type.cases).join(", ")}`);
      }
      const payload = type.cases[value.tag];
      return payload ? check(payload, value.val, `${path}.val`) : undefined;
    }
  }
  return undefined; // of a type that is not checked
}

// shown describes a value in a few words.
function shown(value) {
  if (typeof value === "string") return `the text ${JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)}`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === "object" && value !== null) return `an object with ${Object.keys(value).join(", ") || "nothing"}`;
  return String(value);
}
