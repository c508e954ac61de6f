package policy

import (
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/pdk/locale"
)

var (
	conditionPlace = locale.Text{"en": "at character %d: %v", "ja": "%d 文字目: %v"}
	conditionType  = locale.Text{"en": "it must be true or false, not %s",
		"ja": "true か false になる式を書いてください (現在の型は %s)"}
	conditionValue = locale.Text{"en": "it is %v, neither true nor false", "ja": "値が true でも false でもありません (%v)"}
)

var (
	undeclared   = lazyregexp.New(`^undeclared reference to '(\w+)'`)
	functionName = lazyregexp.New(`^[a-z]\w*$`)
)

// celText is the Japanese of messages of CEL. Its values are the message and the groups of the pattern.
type celText struct {
	pattern  func() *regexp.Regexp
	japanese string
}

// celTexts are the common messages of CEL, of the compiler and then of the evaluation, with their Japanese. The last
// one matches all.
var celTexts = []celText{
	{lazyregexp.New(`^Syntax error: `), "構文エラーです"},
	{lazyregexp.New(`^found no matching overload for '([^']+)' applied to '(.*)'$`),
		"%[2]s は %[3]s には使えません。値の型を確認してください"},
	{lazyregexp.New(`^undefined field '([^']+)'$`), "フィールド %[2]s はありません"},
	{lazyregexp.New(`^type '([^']+)' does not support field selection$`), "%[2]s 型の値にフィールドはありません"},
	{lazyregexp.New(`^no such key: (.*)$`), "キー %[2]s がありません"},
	{lazyregexp.New(`^no such attribute`), "使われている値がわかりません"},
	{lazyregexp.New(`^no such overload`), "値の型が演算や関数に合いません"},
	{lazyregexp.New(`^operation cancelled: actual cost limit exceeded`), "計算量が上限を超えました"},
	{lazyregexp.New(`^(?:division|modulus) by zero`), "0 で割っています"},
	{lazyregexp.New(`^index out of bounds: (.*)$`), "リストに添字 %[2]s の要素はありません"},
	{lazyregexp.New(``), "式が正しくありません"},
}

// celError is an error of CEL: in English its own message, in Japanese what that means and the message in quotes.
func celError(message string) *locale.Error {
	message = strings.Join(strings.Fields(message), " ")
	i := slices.IndexFunc(celTexts, func(text celText) bool { return text.pattern().MatchString(message) })
	values := []any{}
	for _, group := range celTexts[i].pattern().FindStringSubmatch(message) {
		values = append(values, group)
	}
	values[0] = message
	return locale.Text{"en": "%[1]s", "ja": celTexts[i].japanese + " (CEL の説明: %[1]q)"}.Errorf(values...)
}

// conditionError returns the first error of a condition on one line, with its position and, for an unknown variable or
// function, a suggestion.
func conditionError(condition string, issues *cel.Issues) error {
	first := issues.Errors()[0]
	said := celError(first.Message)
	if name := undeclared().FindStringSubmatch(first.Message); name != nil {
		said = strictyaml.Unknown("variable", name[1], variables)
		if calls := regexp.MustCompile(`\b` + name[1] + `\s*\(`); calls.MatchString(condition) {
			said = strictyaml.Unknown("function", name[1], functions())
		}
	}
	return conditionPlace.Errorf(first.Location.Column()+1, said)
}

// functions are the names of all functions of conditions; operators have other names.
func functions() (names []string) {
	for name := range environment.Functions() {
		if functionName().MatchString(name) {
			names = append(names, name)
		}
	}
	return names
}
