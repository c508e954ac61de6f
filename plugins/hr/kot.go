package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/hako-run/hako/pdk"
)

// kot is KING OF TIME, WebAPI v1.0. Source: developer.kingtime.jp. It has all three capabilities for the one company of its token. A
// property that is null is left out of its answers.
type kot struct {
	client

	kinds map[string]string // what the company's employment types stand for
}

var (
	_ employeeLister     = (*kot)(nil)
	_ attendanceLister   = (*kot)(nil)
	_ overtimeCalculator = (*kot)(nil)
)

func newKOT(s *session) (vendor, error) {
	k := &kot{client: s.newClient("KING OF TIME", s.KOTURL), kinds: map[string]string{}}
	k.explain = k.explainStatus
	allowed := []string{fullTime, partTime, contract, executive, otherType}
	for _, entry := range s.KOTEmploymentTypes {
		name, kind, ok := strings.Cut(entry, "=")
		if kind = strings.TrimSpace(kind); !ok || !slices.Contains(allowed, kind) {
			return nil, s.lang.errorf("設定 kot_employment_types の %q は「雇用区分名=値」の形にしてください。値: %s",
				"the setting kot_employment_types has %q, which must be NAME=KIND with a kind of: %s", clip(entry), s.lang.list(allowed))
		}
		k.kinds[strings.TrimSpace(name)] = kind
	}
	return k, nil
}

func (k *kot) title() string { return k.name }

// Codes of KING OF TIME's errors.
const (
	kotBadToken = "100"
	kotClosed   = "104"
	kotTooMany  = "303"
)

// kotProblem holds both forms of error bodies; codes are numbers in one and strings in the other.
type kotProblem struct {
	kotMessage
	Errors []kotMessage `json:"errors"`
}

type kotMessage struct {
	Code    json.RawMessage `json:"code"`
	Message string          `json:"message"`
}

func (m kotMessage) code() string { return strings.Trim(string(m.Code), `"`) }

func (k *kot) explainStatus(r *pdk.HTTPResponse) error {
	var p kotProblem
	_ = json.Unmarshal(r.Body, &p)
	first := p.kotMessage
	if len(p.Errors) > 0 {
		first = p.Errors[0]
	}
	text := k.lang.sprintf("KING OF TIMEがHTTP %dを返しました。", "KING OF TIME answered with HTTP %d.", r.Status)
	if first.Message != "" {
		text += k.lang.sprintf("「%s」", " It says: %s", clip(first.Message))
	}
	if code := first.code(); code != "" {
		text += k.lang.sprintf("（コード %s）", " (code %s)", clip(code))
	}
	return k.lang.errorf("%s%s", "%s %s", text, k.remedy(r.Status, first.code()))
}

func (k *kot) remedy(status int, code string) string {
	pick := k.lang.pick
	switch {
	case code == kotClosed:
		return pick("KING OF TIMEのAPIは、毎日8:30から10:00までと17:30から18:30まで（日本時間）は利用できません。時間をおいてやり直してください。",
			"KING OF TIME's API is closed every day from 08:30 to 10:00 and from 17:30 to 18:30 Japan time: try again after that.")
	case code == kotBadToken || status == statusUnauthorized:
		return pick("アクセストークンが無効です。管理者が認証情報 kot を更新してください。",
			"The access token is not valid: the operator has to renew the credential kot.")
	case code == kotTooMany || status == statusTooMany:
		return pick("リクエストが多すぎます。数分待ってからやり直してください。", "There were too many requests: wait a few minutes and try again.")
	case status == statusForbidden:
		return pick("このサーバーのIPアドレスが、KING OF TIMEの管理画面で許可されているか確認してください。",
			"Check that this server's IP address is on the allow-list in KING OF TIME's settings.")
	case status >= 500:
		return pick("KING OF TIMEの一時的な障害です。時間をおいてやり直してください。", "KING OF TIME has a temporary failure: try again later.")
	}
	return pick("対象月（過去3年から1年先まで）を確認してください。", "Check the month: KING OF TIME serves the last three years and one year ahead.")
}
