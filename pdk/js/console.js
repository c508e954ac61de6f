// console of a plugin: it writes to the plugin's log, which "hako call" and "hako dev plugin" show.
import log from "hako:tool/log@1.0.0";

// text is a value as a person would want to read it.
function text(value) {
  if (typeof value === "string") return value;
  if (value instanceof Error) {
    const own = (value.stack ?? "").split("\n").filter((line) => line && !/\(native\)|\(\/pdk\/guard\.js:/.test(line));
    return [String(value), ...own].join("\n");
  }
  if (typeof value === "object" && value !== null) {
    try {
      return JSON.stringify(value, (_, v) => (typeof v === "bigint" ? `${v}n` : v)) ?? String(value);
    } catch {
      return String(value); // it contains itself
    }
  }
  return String(value);
}

const writer = (level) => (...values) => log.write(level, values.map(text).join(" "));

globalThis.console ??= {
  debug: writer("debug"),
  trace: writer("debug"),
  log: writer("info"),
  info: writer("info"),
  warn: writer("warn"),
  error: writer("error"),
  assert: (ok, ...values) => ok || writer("error")("assertion failed:", ...values),
};
