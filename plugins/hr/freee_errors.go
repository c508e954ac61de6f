package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/hako-run/hako/pdk"
)

// freeeError is an answer of freee's other than 200.
type freeeError struct {
	status int
	code   string // of developer.freee.co.jp/reference/40x-checkpoint; often empty
	said   string // freee's own words
	text   string
}

func (e *freeeError) Error() string { return e.text }

// freeeProblem holds the four forms of freee's error bodies.
type freeeProblem struct {
	Message string `json:"message"`
	Code    string `json:"code"`
	Errors  []struct {
		Type     string   `json:"type"`
		Messages []string `json:"messages"`
	} `json:"errors"`
}

// known reports whether the body is one that freee's application writes, and not something in front of it.
func (p *freeeProblem) known() bool { return p.Message != "" || p.Code != "" || len(p.Errors) > 0 }

// messages are freee's own sentences, in Japanese, as they are meant to be shown.
func (p *freeeProblem) messages() string {
	all := []string{p.Message}
	for _, e := range p.Errors {
		all = append(all, e.Messages...)
	}
	var shown []string
	for _, m := range all {
		if m = strings.TrimSpace(m); m != "" && len(shown) < 3 {
			shown = append(shown, clip(m))
		}
	}
	return strings.Join(shown, " ")
}

func (f *freee) explainStatus(r *pdk.HTTPResponse) error {
	var p freeeProblem
	_ = json.Unmarshal(r.Body, &p)
	text := f.lang.sprintf("freeeがHTTP %dを返しました。", "freee answered with HTTP %d.", r.Status)
	said := p.messages()
	if said != "" {
		text += f.lang.sprintf("「%s」", " It says: %s", said)
	}
	text += f.lang.pick("", " ") + f.remedy(r, &p)
	if id := r.Header["X-Request-Id"]; id != "" {
		text += " (X-Request-Id: " + clip(id) + ")"
	}
	return &freeeError{r.Status, p.Code, said, text}
}

// remedy says what to do. The host has refreshed the token and repeated the request where that could help.
func (f *freee) remedy(r *pdk.HTTPResponse, p *freeeProblem) string {
	pick := f.lang.pick
	switch p.Code {
	case "expired_access_token", "re_authorization_required":
		return f.reconnect()
	case "user_do_not_have_permission":
		return pick("接続したユーザーにこの操作の権限がありません。freeeの管理者に権限を確認してください。",
			"The connected user lacks the permission: ask an administrator of the company in freee.")
	case "company_not_found":
		return pick("company_id を確認してください。接続時に選んだ事業所だけが使えます。",
			"Check company_id: only companies that were chosen when freee was connected can be used.")
	case "freee_plan_limit":
		return pick("この機能は、freeeの契約プランに含まれていません。", "The company's plan at freee does not include this.")
	case "source_ip_address_limit":
		return pick("freeeでIPアドレス制限がかかっています。freeeの管理者に、このサーバーのIPアドレスの許可を依頼してください。",
			"The company limits IP addresses in freee: ask its administrator to allow this server's address.")
	}
	return f.statusRemedy(r, p)
}

func (f *freee) statusRemedy(r *pdk.HTTPResponse, p *freeeProblem) string {
	pick := f.lang.pick
	switch {
	case r.Status == statusUnauthorized:
		return f.reconnect()
	case r.Status == statusForbidden && !p.known():
		return pick("アクセスが集中したためfreeeが一時的に制限している可能性があります。10分ほど待ってからやり直してください。",
			"freee may be holding back requests because there were too many: wait about 10 minutes and try again.")
	case r.Status == statusForbidden:
		return pick("権限がないか、アクセスの集中による一時的な制限です。従業員一覧には管理者（company_admin）の権限が必要です。さきほどまで使えていたなら、10分ほど待ってください。",
			"Either the connected user's role lacks the permission (lists of employees need company_admin), or freee is holding back requests: if it worked a moment ago, wait about 10 minutes.")
	case r.Status == statusNotFound:
		return pick("ID、対象月、事業所を確認してください。", "Check the id, the month and the company.")
	case r.Status == statusTooMany:
		return f.limitRemedy(r)
	case r.Status >= 500:
		return pick("freeeの一時的な障害かメンテナンスです（メンテナンスは主に午前1時から5時）。時間をおいてやり直してください。",
			"freee has a temporary failure or maintenance (usually between 01:00 and 05:00 JST): try again later.")
	}
	return pick("引数を確認してください。", "Check the arguments.")
}

func (f *freee) reconnect() string {
	return f.lang.pick("接続の期限が切れたか、取り消されています。管理者が hako connect freee で再接続してください。",
		"The connection has expired or was revoked: the operator has to reconnect with: hako connect freee")
}

// limitRemedy says when the hour's 10,000 requests are renewed.
func (f *freee) limitRemedy(r *pdk.HTTPResponse) string {
	reset, err := time.Parse(time.RFC3339, r.Header["X-Ratelimit-Reset"])
	if err != nil {
		return f.lang.pick("1時間あたりのリクエスト上限に達しました。1時間ほど待ってください。",
			"The limit of requests per hour is reached: wait up to an hour.")
	}
	return f.lang.sprintf("1時間あたりのリクエスト上限に達しました。%s（日本時間）以降にやり直してください。",
		"The limit of requests per hour is reached: try again after %s (Japan time).", reset.In(jst).Format("2006-01-02 15:04:05"))
}

// withRole adds to a refusal what the connected user may do, for a person to see why.
func (f *freee) withRole(ctx context.Context, err error) error {
	var refused *freeeError
	if !errors.As(err, &refused) || refused.status != statusForbidden && refused.status != statusNotFound {
		return err
	}
	if _, meErr := f.me(ctx); meErr != nil {
		return err
	}
	m, ok := f.membership()
	switch {
	case !ok:
		return f.lang.errorf("%w 接続したユーザーが使える事業所: %s", "%w The connected user's companies: %s", err, f.lang.list(f.user.names()))
	case m.role == selfOnly && m.employee != "":
		return f.lang.errorf("%w 接続したユーザーの権限は self_only で、自分の勤怠（employee_id %s）だけを読めます。",
			"%w The connected user's role is self_only, which reads only its own attendance (employee_id %s).", err, m.employee)
	}
	return f.lang.errorf("%w 接続したユーザーの権限: %s", "%w The connected user's role: %s", err, clip(m.role))
}
