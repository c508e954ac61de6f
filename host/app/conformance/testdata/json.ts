// The tool json: for each text, 1 if parse takes it for JSON and 0 if not.
import { Result, Value, parse, tool } from "./pdk/hako";

export { hako_abi_1, hako_call } from "./pdk/hako";

// The text of a value is empty if it is not there, and "null" if it is null. JSON that was read can be written.
function isThere(value: Value): bool { return value.toString() != "null" || value.text == "null"; }

tool("json", (input: Value): Result =>
  new Result().text(input.get("texts").items.map<string>((text) => isThere(parse(text.string())) ? "1" : "0").join("")));
