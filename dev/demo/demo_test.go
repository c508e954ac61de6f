package demo

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/jma"
	modelscript "github.com/hako-run/hako/dev/fakes/script"
)

// TestAnswers: the model with the script asks the weather tool for the place and the day of the question, answers
// about umbrellas, and answers questions about overtime with figures, without writing anything.
func TestAnswers(t *testing.T) {
	t.Parallel()
	steps, err := ParseScript(Script)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"東京の天気は？":                                          `{"lang":"ja","location":"東京"}`,
		"今日、松山は雨？":                                         `{"lang":"ja","location":"松山"}`,
		"明日の札幌の天気を教えて":                                     `{"date":"tomorrow","lang":"ja","location":"札幌"}`,
		"福井はあした傘いる？":                                       `{"date":"tomorrow","lang":"ja","location":"福井"}`,
		"鹿児島県の週間予報":                                        `{"date":"week","lang":"ja","location":"鹿児島"}`,
		"今週の石垣島":                                           `{"date":"week","lang":"ja","location":"石垣島"}`,
		"あさって津市は晴れる？":                                      `{"date":"week","lang":"ja","location":"津市"}`,
		"南大東で傘は必要？":                                        `{"lang":"ja","location":"南大東"}`,
		"What is the weather in Tokyo?":                    `{"lang":"en","location":"Tokyo"}`,
		"Do I need an umbrella in kochi tomorrow?":         `{"date":"tomorrow","lang":"en","location":"kochi"}`,
		"Tomorrow in Nagano: rain?":                        `{"date":"tomorrow","lang":"en","location":"Nagano"}`,
		"Forecast for Matsue this week, please":            `{"date":"week","lang":"en","location":"Matsue"}`,
		"Cape Muroto the day after tomorrow":               `{"date":"week","lang":"en","location":"Cape Muroto"}`,
		"府中の天気は？":                                          `{"lang":"ja","location":"府中"}`,
		"府中市の明日の天気は？":                                      `{"date":"tomorrow","lang":"ja","location":"府中市"}`,
		"明日の軽井沢の天気":                                        `{"date":"tomorrow","lang":"ja","location":"軽井沢"}`,
		"weather in Fuchu?":                                `{"lang":"en","location":"Fuchu"}`,
		"明日の天気は？":                                          "どこの天気ですか",
		"営業部の5月の残業時間は？":                                    `{"department":"営業部","month":"2026-05"}`,
		"5月に一番残業したのは誰？":                                    `{"month":"2026-05"}`,
		"5月の残業":                                            `{"month":"2026-05"}`,
		"5月の残業をシートに書いてくれる？":                                `{}`,
		"シートに5月の残業を入れてもいい？":                                `{}`,
		"5月の残業をまとめて、あきさんに教えて":                              `{}`,
		"Write a list of the overtime in May to the sheet": `{}`,
		"Can you put the overtime of May into the sheet?":  `{}`,
		"Show me the overtime of May":                      `{"month":"2026-05"}`,
		"What is the weather in Tokyo tomorrow?":           `{"date":"tomorrow","lang":"en","location":"Tokyo"}`,
		"What is the weather like in Fuchu tomorrow?":      `{"date":"tomorrow","lang":"en","location":"Fuchu"}`,
		"weather for tomorrow in Fuchu":                    `{"date":"tomorrow","lang":"en","location":"Fuchu"}`,
		"weather in Fuchu the day after tomorrow":          `{"date":"week","lang":"en","location":"Fuchu"}`,
		"forecast for Fuchu this week":                     `{"date":"week","lang":"en","location":"Fuchu"}`,
		"weather for today in Fuchu":                       `{"lang":"en","location":"Fuchu"}`,
		"weather in Fuchu right now?":                      `{"lang":"en","location":"Fuchu"}`,
		"forecast for tomorrow?":                           "For which place?", "weather for the weekend": "For which place?",
		"あしたの天気は？": "どこの天気ですか", "あさっての天気は？": "どこの天気ですか",
		"Who worked overtime in May?": `{"month":"2026-05"}`,
		"5月の残業をまとめて、あきさんに知らせて":        `{}`,
		"明日は傘いる？":                     "どこの天気ですか", "Do I need an umbrella?": "For which place?",
		"こんにちは": "台本どおり", "hello": "a model with a script",
	} {
		step := steps.Answer(&modelscript.Conversation{Text: text,
			Tools: []string{"get_weather", "list_employees", "calculate_overtime"}})
		got := step.Say
		if len(step.Call) > 0 {
			got = step.Call[0].Arguments
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, test := range []struct{ text, result, want string }{
		{"東京で傘いる？", "  傘: 必要です（降水確率は最大80%）", "はい、傘を持って"},
		{"東京で傘いる？", "  傘: 念のため持っておくと安心です", "念のため、"},
		{"東京で傘いる？", "  傘: 必要なさそうです", "いいえ、"},
		{"東京の天気は？", "  傘: 必要です", "  傘: 必要です"},
		{"Will it rain in Tokyo?", "  Umbrella: take one (chance of rain up to 80%)", "Yes, take"},
		{"umbrella in Tokyo?", "  Umbrella: may be needed", "An umbrella may"},
		{"umbrella in Tokyo?", "  Umbrella: probably not needed", "No, you can"},
		{"umbrella in Tokyo this week?", "Thu 16 Apr: rain", "Thu 16 Apr"},
	} {
		if got := steps.Answer(&modelscript.Conversation{Text: test.text,
			Results: []string{test.result}}).Say; !strings.HasPrefix(got, test.want) ||
			!strings.Contains(got, test.result) {
			t.Errorf("%s after %q: %q", test.text, test.result, got)
		}
	}
	department := `{"total":2,"employees":[{"name":"架空 太郎","total_overtime_minutes":0},{"name":"見本 花子",` +
		`"total_overtime_minutes":900}]}`
	if got := steps.Answer(&modelscript.Conversation{Text: "営業部の5月の残業時間は？",
		Results: []string{department}}).Say; !strings.Contains(got, "架空 太郎さんが0分、見本 花子さんが900分") {
		t.Error(got)
	}
	for _, place := range jma.Places() {
		text := "明日の" + shortPlace(place) + "の天気"
		if place[0] < 0x80 {
			text = "Weather in " + place + " tomorrow"
		}
		if step := steps.Answer(&modelscript.Conversation{Text: text,
			Tools: []string{"get_weather"}}); len(step.Call) != 1 ||
			!strings.Contains(step.Call[0].Arguments, "tomorrow") {
			t.Errorf("%s: %+v", text, step)
		}
	}
}
