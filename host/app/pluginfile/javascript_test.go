package pluginfile

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testprogram"
)

// TestJavaScriptPDK runs the parts of pdk/js that need no componentize-qjs, in Node if that is installed: what WIT means
// for the functions of a plugin, and what is said about a result that does not fit.
func TestJavaScriptPDK(t *testing.T) {
	t.Parallel()
	node := testprogram.Find(t, "node")
	const script = `
import { entry, readWIT } from "./build.mjs";
import { check, guard } from "./guard.js";
const wit = readWIT(` + "`" + `
package local:plugin;
interface types { enum scale { low, high } record place { city-name: string, at: option<tuple<f64, f64>> } }
/* a comment; with { brackets */
interface weather {
  use types.{place as spot, scale};
  variant sky { clear, rain(u32) }
  record day { spot: spot, skies: list<sky>, scale: scale }
  @since(version = 1.0.0)
  days: func(name: string, n: u8) -> result<list<day>, string>; // the comment after
  nothing: func();
}
world plugin {
  import hako:tool/log@1.0.0;
  export greet-person: func(name: string) -> string;
  export weather;
  export wasi:http/incoming-handler@0.2.0;
}` + "`" + `);
const source = entry(wit, "../plugin.js");
console.log(source.replace(/\{"kind".*?\}\)(?=[, ])/g, "TYPE)"));
const type = JSON.parse(/"days", (\{.*?\})\), nothing/.exec(source)[1]);
const day = { spot: { cityName: "Oslo", at: null }, skies: [{ tag: "clear" }, { tag: "rain", val: 3 }], scale: "low" };
const said = (change) => { const value = structuredClone(day); change(value); console.log(check(type, [day, value], "the result")); };
said(() => {});
said((d) => { d.spot.cityName = 5; });
said((d) => { delete d.spot.at; d.skies[1].val = "three"; });
said((d) => { d.skies[0] = "clear"; });
said((d) => { d.scale = "middle"; });
said((d) => { d.spot.at = [1]; });
said((d) => { d.spot = null; });
for (const f of [() => guard({ greet() {}, version: 1 }, "bye", null), () => guard(undefined, "greet", null),
    () => guard({ greet: () => 5 }, "greet", { kind: "string" })()]) {
  try { f(); console.log("nothing thrown"); } catch (error) { console.log(error.message); }
}
`
	command := exec.CommandContext(t.Context(), node, "--input-type=module", "--eval", script)
	command.Dir = filepath.Join("..", "..", "..", "pdk", "js")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const want = `import "../pdk/console.js";
import { guard } from "../pdk/guard.js";
import * as plugin from "../plugin.js";
export const greetPerson = guard(plugin, "greetPerson", {"kind":"string"});
export const weather = { ...plugin.weather, days: guard(plugin.weather, "days", TYPE), nothing: guard(plugin.weather, "nothing", null) };
export const incomingHandler = { ...plugin.incomingHandler,  };

undefined
the result[1].spot.cityName must be a text, not 5
the result[1].skies[1].val must be an integer, not the text "three"
the result[1].skies[0] must be an object with a tag, one of clear, rain, not the text "clear"
the result[1].scale must be one of low, high, not the text "middle"
the result[1].spot.at must be an array of 2, not an array of 1
the result[1].spot must be an object, not null
wit/world.wit exports the function bye, and the plugin has none of that name: it has greet
wit/world.wit exports the function greet, and the plugin has none of that name: it has none
greet: the result must be a text, not 5
`
	if got := string(out); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, strings.TrimSpace(want))
	}
}
