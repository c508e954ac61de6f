package toolsearch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hako-run/hako/internal/toolsearch"
)

var documents = []toolsearch.Document{
	{Name: "get_weather", Titles: []string{"Weather forecast", "天気予報"},
		Descriptions: []string{"The forecast for a municipality.", "市区町村の天気予報を返します。"}, Arguments: []string{"place", "Name of a town"}},
	{Name: "listOvertime", Titles: []string{"Overtime of employees", "残業時間の一覧"},
		Descriptions: []string{"Overtime by month; employees without records are listed.", "従業員の残業時間を月ごとに集計します。"}, Arguments: []string{"month"}},
	{Name: "send_message", Titles: []string{"Send a message", "メッセージの送信"}, Descriptions: []string{"Posts to a channel."}},
	{Name: "file_search", Titles: []string{"Search files"}, Descriptions: []string{"Finds files by their content, also of messages."}},
}

func TestSearch(t *testing.T) {
	t.Parallel()
	x := toolsearch.New(documents)
	for query, want := range map[string]string{
		"what is the weather in Sapporo?": "get_weather",
		"天気":                              "get_weather",
		"今月の残業を調べたい":                      "listOvertime",
		"employee overtimes":              "listOvertime",
		"sending messages":                "send_message file_search",
		"メッセージを送る":                        "send_message",
		"ﾒｯｾｰｼﾞ":                          "send_message", // half-width
		"overtime list":                   "listOvertime",
		"search":                          "file_search",
		"zzz":                             "",
		"":                                "",
		"\xff\x00":                        "",
	} {
		var got []string
		for _, i := range x.Search(query) {
			got = append(got, documents[i].Name)
		}
		if joined := strings.Join(got, " "); !strings.HasPrefix(joined, want) || want == "" && joined != "" {
			t.Errorf("%q finds %q, want %q first", query, joined, want)
		}
	}
}

// BenchmarkSearch searches 10,000 tools.
func BenchmarkSearch(b *testing.B) {
	var many []toolsearch.Document
	for i := range 10_000 {
		d := documents[i%len(documents)]
		d.Name = fmt.Sprintf("%s_%d", d.Name, i)
		many = append(many, d)
	}
	x := toolsearch.New(many)
	for b.Loop() {
		x.Search("今月の残業時間 overtime of employees in sapporo 7777")
	}
}
