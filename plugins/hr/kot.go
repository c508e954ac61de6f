package main

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/pdk"
)

// kot is KING OF TIME, WebAPI v1.0. Source: developer.kingtime.jp. It has all three capabilities for the one company of
// its token. A property that is null is left out of its answers.
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
				"the setting kot_employment_types has %q, which must be NAME=KIND with a kind of: %s", clip(entry),
				s.lang.list(allowed))
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

func (k *kot) explainStatus(r *pdk.HTTPResponse, e *vendorError) {
	var p kotProblem
	_ = json.Unmarshal(r.Body, &p)
	first := p.kotMessage
	if len(p.Errors) > 0 {
		first = p.Errors[0]
	}
	e.code, e.said = first.code(), clip(first.Message)
	switch e.code {
	case kotClosed:
		e.retryable, e.wait = true, untilOpen(k.now)
	case kotTooMany:
		e.retryable = true
	}
	e.text = k.lang.sprintf("KING OF TIMEがHTTP %dを返しました。", "KING OF TIME answered with HTTP %d.", r.Status)
	if e.said != "" {
		e.text += k.lang.sprintf("「%s」", " It says %q.", e.said)
	}
	if e.code != "" {
		e.text += k.lang.sprintf("（コード %s）", " Its code is %s.", clip(e.code))
	}
	e.text += k.lang.pick("", " ") + k.remedy(e)
}

// untilOpen returns the time until KING OF TIME's API opens, at 10:00 or at 18:30 Japan time.
func untilOpen(now time.Time) time.Duration {
	midnight := dateOf(now).midnight()
	for _, opens := range []time.Duration{10 * time.Hour, 18*time.Hour + 30*time.Minute} {
		if wait := midnight.Add(opens).Sub(now); wait > 0 {
			return wait
		}
	}
	return 0
}

func (k *kot) remedy(e *vendorError) string {
	pick := k.lang.pick
	switch {
	case e.code == kotClosed:
		return pick("KING OF TIMEのAPIは、毎日8:30から10:00までと17:30から18:30まで（日本時間）は利用できません。時間をおいてやり直してください。",
			"KING OF TIME's API is closed every day from 08:30 to 10:00 and from 17:30 to 18:30 Japan time: try again after that.")
	case e.code == kotBadToken || e.status == statusUnauthorized:
		return pick("アクセストークンが無効です。", "The access token is not valid. ") + k.renew(e, "kot")
	case e.code == kotTooMany || e.status == statusTooMany:
		return pick("リクエストが多すぎます。", "There were too many requests. ") +
			k.waiting(e, pick("数分待ってからやり直してください。", "Wait a few minutes and try again."))
	case e.status == statusForbidden:
		return pick("このサーバーのIPアドレスが、KING OF TIMEの管理画面で許可されているか確認してください。",
			"Check that this server's IP address is on the allow-list in KING OF TIME's settings.")
	case e.status >= 500:
		return pick("KING OF TIMEの一時的な障害です。", "KING OF TIME has a temporary failure. ") +
			k.waiting(e, pick("時間をおいてやり直してください。", "Try again later."))
	}
	return pick("対象月（過去3年から1年先まで）を確認してください。",
		"Check the month: KING OF TIME serves the last three years and one year ahead.")
}
