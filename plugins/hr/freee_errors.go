package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/hako-run/hako/pdk"
)

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

func (f *freee) explainStatus(r *pdk.HTTPResponse, e *vendorError) {
	var p freeeProblem
	_ = json.Unmarshal(r.Body, &p)
	e.code, e.said = p.Code, p.messages()
	f.setWait(r, &p, e)
	e.text = f.lang.sprintf("freeeがHTTP %dを返しました。", "freee answered with HTTP %d.", r.Status)
	if e.said != "" {
		e.text += f.lang.sprintf("「%s」", " It says %q.", e.said)
	}
	e.text += f.lang.pick("", " ") + f.remedy(&p, e)
	if id := r.Header["X-Request-Id"]; id != "" {
		e.text += " (X-Request-Id: " + clip(id) + ")"
	}
}

// throttleTime is the time after which freee's abuse control, which answers 403, lets requests through again.
const throttleTime = 10 * time.Minute

// setWait sets how long to wait: the time of Retry-After, else until the hour's limit is renewed, else as long as abuse
// control takes.
func (f *freee) setWait(r *pdk.HTTPResponse, p *freeeProblem, e *vendorError) {
	switch {
	case r.Status == statusTooMany && e.wait == 0:
		if reset, err := time.Parse(time.RFC3339, r.Header["X-Ratelimit-Reset"]); err == nil {
			e.wait = max(0, reset.Sub(f.now))
		}
	case r.Status == statusForbidden && !p.known():
		e.retryable, e.wait = true, throttleTime
	}
}

// remedy returns what to do. The host has refreshed the token and repeated the request where that could help.
func (f *freee) remedy(p *freeeProblem, e *vendorError) string {
	pick := f.lang.pick
	switch p.Code {
	case "expired_access_token", "re_authorization_required":
		return f.reconnect(e)
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
	return f.statusRemedy(p, e)
}

func (f *freee) statusRemedy(p *freeeProblem, e *vendorError) string {
	pick := f.lang.pick
	switch {
	case e.status == statusUnauthorized:
		return f.reconnect(e)
	case e.status == statusForbidden && !p.known():
		return pick("アクセスが集中したためfreeeが一時的に制限している可能性があります。10分ほど待ってからやり直してください。",
			"freee may be holding back requests because there were too many: wait about 10 minutes and try again.")
	case e.status == statusForbidden:
		return pick("権限がないか、アクセスの集中による一時的な制限です。従業員一覧には管理者（company_admin）の権限が必要です。さきほどまで使えていたなら、10分ほど待ってください。",
			"Either the connected user's role lacks the permission (lists of employees need company_admin), or freee is holding back requests: if it worked a moment ago, wait about 10 minutes.")
	case e.status == statusNotFound:
		return pick("ID、対象月、事業所を確認してください。従業員IDは list_employees で調べられます。",
			"Check the id, the month and the company: list_employees finds ids.")
	case e.status == statusTooMany:
		return pick("リクエストの上限に達しました。", "The limit of requests is reached. ") +
			f.waiting(e, pick("1時間ほど待ってください。", "Wait up to an hour."))
	case e.status >= 500:
		return pick("freeeの一時的な障害かメンテナンスです（メンテナンスは主に午前1時から5時）。",
			"freee has a temporary failure or maintenance (usually between 01:00 and 05:00 JST). ") +
			f.waiting(e, pick("時間をおいてやり直してください。", "Try again later."))
	}
	return pick("引数を確認してください。", "Check the arguments.")
}

func (f *freee) reconnect(e *vendorError) string {
	return f.lang.pick("接続の期限が切れたか、取り消されています。", "The connection has expired or was revoked. ") + f.renew(e, "freee")
}

// withRole adds to a refusal what the connected user may do, for a person to see why.
func (f *freee) withRole(ctx context.Context, err error) error {
	var refused *vendorError
	if !errors.As(err, &refused) || refused.status != statusForbidden && refused.status != statusNotFound {
		return err
	}
	if _, meErr := f.me(ctx); meErr != nil {
		return err
	}
	m, ok := f.membership()
	switch {
	case !ok:
		return f.lang.errorf("%w 接続したユーザーが使える事業所: %s", "%w The connected user's companies: %s", err,
			f.lang.list(f.user.names()))
	case m.role == selfOnly && m.employee != "":
		return f.lang.errorf("%w 接続したユーザーの権限は self_only で、自分の勤怠（employee_id %s）だけを読めます。",
			"%w The connected user's role is self_only, which reads only its own attendance (employee_id %s).", err,
			m.employee)
	}
	return f.lang.errorf("%w 接続したユーザーの権限: %s", "%w The connected user's role: %s", err, clip(m.role))
}
