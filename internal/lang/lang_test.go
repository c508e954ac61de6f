package lang

import "testing"

func TestOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                   "",
		"42, 3.5 %":          "",
		"営業部の5月の残業時間は？":      "ja",
		"freeeのAPIのstatusは？": "ja",
		"東京 天気":              "ja",
		"ﾀｽｸ一覧":              "ja",
		"What's the overtime of 営業部 in May, and who was on paid leave?": "",
		"Tell 佐藤 about it": "",
		"list_tasks":       "",
		"Grüße an Jörg":    "",
	} {
		if got := Of(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
