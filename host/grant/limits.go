package grant

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/strictyaml"
)

// limitNames describes the limits in words, by manifest key.
var limitNames = map[string]manifest.Text{
	"time":          bilingual("the duration of a call", "呼び出し 1 回の時間"),
	"cpu":           bilingual("the CPU limit of a call in million steps", "呼び出し 1 回の計算量 (百万ステップ)"),
	"memory":        bilingual("the memory of an instance", "インスタンスのメモリー"),
	"input":         bilingual("the arguments of a call", "呼び出し 1 回の引数"),
	"output":        bilingual("the result of a call", "呼び出し 1 回の結果"),
	"log":           bilingual("the log of a call", "呼び出し 1 回のログ"),
	"concurrency":   bilingual("calls at once", "同時に実行する呼び出しの数"),
	"queue":         bilingual("calls that wait", "待機する呼び出しの数"),
	"queueWait":     bilingual("the queueing time of a call", "呼び出しの待ち時間"),
	"rate":          bilingual("calls a minute", "1 分あたりの呼び出しの数"),
	"openFiles":     bilingual("open files of a call", "呼び出し 1 回で開くファイルの数"),
	"requests":      bilingual("HTTP requests of a call", "呼び出し 1 回の HTTP リクエストの数"),
	"calls":         bilingual("calls of other tools in a call", "呼び出し 1 回の中でのほかのツールの呼び出しの数"),
	"parallelCalls": bilingual("calls of other tools at once in a call", "呼び出し 1 回の中でのほかのツールの同時呼び出しの数"),
}

// claimNames describes the claims of tools' hints in words.
var claimNames = map[string]manifest.Text{
	manifest.ClaimReadOnly: bilingual("it only reads (readOnlyHint)", "読み取りだけを行う (readOnlyHint)"),
	manifest.ClaimHarmless: bilingual("it destroys nothing (destructiveHint)", "何も破壊しない (destructiveHint)"),
	manifest.ClaimIdempotent: bilingual("a second call changes nothing more (idempotentHint)",
		"繰り返しても結果は変わらない (idempotentHint)"),
	manifest.ClaimClosedWorld: bilingual("it reaches nothing outside (openWorldHint)", "外部には接続しない (openWorldHint)"),
}

// limits describes the limits in asked that are larger than in others; "" if there are none.
func (w wording) limits(format string, asked, others manifest.Limits, language string) string {
	larger := asked.Beyond(others)
	texts, before, none := larger.Texts(), others.Texts(), manifest.Limits{}.Texts()
	var items []string
	for _, key := range manifest.LimitKeys {
		if texts[key] != none[key] {
			items = append(items, w.f(w.limit, limitNames[key].In(language), texts[key], before[key]))
		}
	}
	if items == nil {
		return ""
	}
	return w.f(format, strings.Join(items, w.comma))
}

// claimAdditions lists, by tool, the claims of hints that were not approved. Policies may allow more for such claims.
func (w wording) claimAdditions(approved, asked map[string][]string, language string) []string {
	var additions []string
	for _, tool := range sortedKeys(asked) {
		var more []string
		for _, claim := range asked[tool] {
			implied := claim == manifest.ClaimHarmless && slices.Contains(approved[tool], manifest.ClaimReadOnly)
			if !implied && !slices.Contains(approved[tool], claim) {
				more = append(more, claimNames[claim].In(language))
			}
		}
		if more != nil {
			additions = append(additions, w.f(w.addClaims, tool, strings.Join(more, w.comma)))
		}
	}
	return additions
}

func readClaims(dst *map[string][]string) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		*dst = map[string][]string{}
		v.Map(func(tool string, v strictyaml.Value) {
			var claims []string
			strictyaml.Strings(&claims)(v)
			for _, claim := range claims {
				if claimNames[claim] == nil {
					v.Problem("%s", strictyaml.Unknown("claim", claim, sortedKeys(claimNames)))
				}
			}
			(*dst)[tool] = claims
		})
	}
}

func formatLimits(l manifest.Limits) strictyaml.Mapping {
	texts, none := l.Texts(), manifest.Limits{}.Texts()
	var stated strictyaml.Mapping
	for _, key := range manifest.LimitKeys {
		if texts[key] == none[key] {
			continue
		}
		var value any = texts[key]
		if n, err := strconv.Atoi(texts[key]); err == nil {
			value = n
		}
		stated = append(stated, strictyaml.Entry{Key: key, Value: value})
	}
	return stated
}

func formatClaims(claims map[string][]string) strictyaml.Mapping {
	var list strictyaml.Mapping
	for _, tool := range sortedKeys(claims) {
		list = append(list, strictyaml.Entry{Key: tool, Value: claims[tool]})
	}
	return list
}
