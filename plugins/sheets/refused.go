package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/hako-run/hako/pdk"
)

// refused explains an answer that is not a success (https://cloud.google.com/apis/design/errors): what Google says, and
// what to do about it.
func (s *spreadsheet) refused(ctx context.Context, response *pdk.HTTPResponse) error {
	var answer struct {
		Error struct {
			Message string `json:"message"`
			Status  string `json:"status"`
		} `json:"error"`
	}
	// Gateways answer in HTML: then the status alone has to do.
	_ = json.Unmarshal(response.Body, &answer)
	said := shorten(answer.Error.Message)
	switch status := response.Status; {
	case status == 400:
		return s.invalid(ctx, said)
	case status == 401:
		return fail("Google does not accept the credential (401: %s): ask the operator to check the service account's key for the credential of this plugin",
			"Google が認証情報を受け付けません (401: %s)。このプラグインの認証情報に設定したサービスアカウントの鍵を確かめるよう、管理者に伝えてください", said)
	case status == 403:
		return forbidden(said, response.Credential["client_email"])
	case status == 404:
		return fail(
			"there is no spreadsheet with this ID (404: %s): check spreadsheet_id, the part after /d/ in its URL",
			"この ID のスプレッドシートがありません (404: %s)。URL の /d/ の後の部分を確かめてください", said)
	case status == 429:
		return fail("Google limits requests per minute (429: %s). Nothing was written: try again in %s seconds",
			"Google の 1 分あたりの上限に達しました (429: %s)。何も書き込まれていません。%s 秒後にもう一度試してください",
			said, pause(response, "60"))
	case status >= 500:
		return &uncertain{fail("Google Sheets failed (HTTP %d: %s)", "Google スプレッドシートでエラーが起きました (HTTP %d: %s)", status,
			said)}
	}
	return fail("Google Sheets answered HTTP %d: %s", "Google スプレッドシートが HTTP %d を返しました: %s", response.Status, said)
}

// invalid explains a 400. If it is the range, the sheets that there are help most.
func (s *spreadsheet) invalid(ctx context.Context, said string) error {
	switch {
	case strings.Contains(said, "Unable to parse range"):
		if names := s.titles(ctx); names != "" {
			return fail("the spreadsheet has no such sheet (%s). Its sheets: %s", "そのシートはありません (%s)。このスプレッドシートのシート: %s",
				said, names)
		}
	case strings.Contains(said, "exceeds grid limits"):
		return fail("the range is outside of the sheet (%s): name cells inside it; mode append adds rows at its end",
			"範囲がシートの外です (%s)。シートの中のセルを指定してください。mode append なら末尾に行を追加できます", said)
	}
	return fail("Google does not accept the request (400: %s)", "Google がリクエストを受け付けません (400: %s)", said)
}

// forbidden explains a 403: the API is off, the token is for something else, or nobody has shared the spreadsheet.
func forbidden(said, account string) error {
	switch {
	case strings.Contains(said, "has not been used") || strings.Contains(said, "disabled"):
		return fail("the Google Sheets API is not enabled in the service account's project (403: %s): ask the operator to enable it",
			"サービスアカウントのプロジェクトで Google Sheets API が有効になっていません (403: %s)。有効にするよう管理者に依頼してください", said)
	case strings.Contains(said, "scope"):
		return fail("the credential is not for Google Sheets (403: %s): ask the operator to give it the scope https://www.googleapis.com/auth/spreadsheets",
			"認証情報が Google スプレッドシート用ではありません (403: %s)。スコープ https://www.googleapis.com/auth/spreadsheets を加えるよう管理者に依頼してください", said)
	case account == "":
		return fail("the spreadsheet is not shared with the service account of this plugin (403: %s): share it, as an editor if it is to be written",
			"スプレッドシートがこのプラグインのサービスアカウントに共有されていません (403: %s)。共有してください。書き込むには編集者の権限が要ります", said)
	}
	return fail("the spreadsheet is not shared with %[2]s (403: %[1]s): share it with this address, as an editor if it is to be written",
		"スプレッドシートが %[2]s に共有されていません (403: %[1]s)。このアドレスに共有してください。書き込むには編集者の権限が要ります", said, account)
}

// shorten keeps a text from outside to one line of a bearable length.
func shorten(text string) string {
	const longest = 300
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return string(runes)
}

// pause is for how many seconds a service wants to be left alone. It may also name a date; the usual pause is good
// enough then.
func pause(response *pdk.HTTPResponse, usual string) string {
	if seconds := response.Header["Retry-After"]; seconds != "" && len(seconds) < 6 &&
		strings.Trim(seconds, "0123456789") == "" {
		return seconds
	}
	return usual
}
