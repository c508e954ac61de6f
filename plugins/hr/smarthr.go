package main

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hako-run/hako/pdk"
)

// smarthr is SmartHR, API v1. Source: developer.smarthr.jp. It has employees; its API has no clock times and no working
// hours, so attendance and overtime are not among its capabilities.
type smarthr struct {
	client
}

var _ employeeLister = (*smarthr)(nil)

// isSubdomain reports whether s is one label of a host name.
func isSubdomain(s string) bool {
	return s != "" && len(s) <= 63 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && s[0] != '-' &&
		s[len(s)-1] != '-'
}

func newSmartHR(s *session) (vendor, error) {
	h := &smarthr{s.newClient("SmartHR", s.SmartHRURL)}
	h.explain = h.explainStatus
	switch {
	case h.base != "":
	case isSubdomain(s.SmartHRSubdomain):
		h.base = "https://" + s.SmartHRSubdomain + ".smarthr.jp/api/v1"
	case s.SmartHRSubdomain != "":
		return nil, s.lang.errorf("設定 smarthr_subdomain の値 %q は使えません。example.smarthr.jp の example の部分だけを指定してください。",
			"the setting smarthr_subdomain is %q and must be one label, such as example for example.smarthr.jp",
			clip(s.SmartHRSubdomain))
	default:
		return nil, s.lang.errorf("SmartHRを使うには、設定 smarthr_subdomain か smarthr_url が必要です。",
			"SmartHR needs the setting smarthr_subdomain or smarthr_url")
	}
	return h, nil
}

func (h *smarthr) title() string { return h.name }

func (h *smarthr) statuses() []string { return []string{active, onLeave, retired, upcoming} }

// smarthrPage is the largest page that SmartHR serves.
const smarthrPage = 100

// members is employees: SmartHR has only the current departments.
func (h *smarthr) members(ctx context.Context, _ date) (*roster, error) { return h.employees(ctx) }

// employees reads all pages of crews, people who have left included. Offset paging may repeat people; each is given
// once.
func (h *smarthr) employees(ctx context.Context) (*roster, error) {
	all := &roster{}
	seen := map[string]bool{}
	for page := 1; page <= maxPages; page++ {
		response, err := h.get(ctx, "/crews", url.Values{"page": {strconv.Itoa(page)},
			"per_page": {strconv.Itoa(smarthrPage)}})
		if err != nil {
			return nil, err
		}
		d := h.document()
		list := d.parseList(response.Body, "crews")
		for _, o := range list {
			if e := h.employee(o); !seen[e.ID] {
				seen[e.ID] = true
				all.people = append(all.people, e)
			}
		}
		if d.err != nil {
			return nil, d.err
		}
		if lastPage(response, page, len(list)) {
			return all, nil
		}
	}
	return nil, h.lang.errorf("SmartHRの従業員が%dページを超えました。", "SmartHR has more than %d pages of employees", maxPages)
}

// lastPage goes by the total that SmartHR gives in a header, and without one by the first page that is not full.
func lastPage(r *pdk.HTTPResponse, page, items int) bool {
	total, err := strconv.Atoi(r.Header["X-Total-Count"])
	if err != nil {
		return items < smarthrPage
	}
	return items == 0 || page*smarthrPage >= total
}

var (
	smarthrStatuses = map[string]string{"employed": active, "absent": onLeave, "retired": retired}
	smarthrKinds    = map[string]string{
		"full_timer":             fullTime,
		"part_timer":             partTime,
		"contract_worker":        contract,
		"permatemp":              contract,
		"board_member":           executive,
		"outsourcing_contractor": otherType,
		"etc":                    otherType,
	}
)

func (h *smarthr) employee(o object) employee {
	e := employee{
		ID:         o.key("id"),
		Code:       o.optionalText("emp_code"),
		Name:       smarthrName(o),
		Position:   o.optionalName("position"),
		Type:       unknown,
		Status:     unknown,
		StatusRaw:  clipped(o.text("emp_status")),
		HireDate:   o.optionalDate("entered_at"),
		RetireDate: o.optionalDate("resigned_at"),
	}
	if known, ok := smarthrStatuses[*e.StatusRaw]; ok {
		e.Status = known
	}
	if e.Status == active && e.HireDate != nil && *e.HireDate > dateOf(h.now) {
		e.Status = upcoming
	}
	if o.has("employment_type") {
		e.TypeRaw = o.child("employment_type").optionalText("preset_type")
		if known, ok := smarthrKinds[deref(e.TypeRaw)]; ok {
			e.Type = known
		}
	}
	for _, department := range o.optionalChildren("departments") {
		if name := department.optionalText("name"); name != nil {
			e.departments = append(e.departments, *name)
		}
	}
	if legacy := o.optionalName("department"); legacy != nil && len(e.departments) == 0 {
		e.departments = []string{*legacy}
	}
	if len(e.departments) > 0 {
		e.Department, e.main = &e.departments[0], e.departments[:1]
	}
	return e
}

// smarthrName prefers the name that is used at work.
func smarthrName(o object) string {
	last, first := o.optionalText("business_last_name"), o.optionalText("business_first_name")
	if last == nil && first == nil {
		last, first = o.optionalText("last_name"), o.optionalText("first_name")
	}
	if last == nil && first == nil {
		o.missing(o.place("last_name"))
	}
	return strings.TrimSpace(deref(last) + " " + deref(first))
}

func (h *smarthr) explainStatus(r *pdk.HTTPResponse, e *vendorError) {
	var p struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(r.Body, &p)
	e.code, e.said = p.Type, clip(p.Message)
	if r.Status == statusTooMany && e.wait == 0 {
		e.wait = untilLimitEnds(r)
	}
	e.text = h.lang.sprintf("SmartHRがHTTP %dを返しました。", "SmartHR answered with HTTP %d.", r.Status)
	if e.said != "" {
		e.text += h.lang.sprintf("「%s」", " It says %q.", e.said)
	}
	e.text += h.lang.pick("", " ") + h.remedy(e)
}

func (h *smarthr) remedy(e *vendorError) string {
	pick := h.lang.pick
	later := pick("時間をおいてやり直してください。", "Try again later.")
	switch {
	case e.code == "service_maintenance":
		return pick("SmartHRはメンテナンス中です。", "SmartHR is under maintenance. ") + h.waiting(e, later)
	case e.status == statusUnauthorized:
		return pick("アクセストークンが無効です。", "The access token is not valid. ") + h.renew(e, "smarthr")
	case e.status == statusForbidden:
		return pick("アクセストークンに従業員情報の参照権限があるか、IPアドレス制限がないか、管理者が確認してください。",
			"The operator has to check that the access token may read employees, and that no limit of IP addresses is in the way.")
	case e.status == statusNotFound:
		return pick("設定 smarthr_subdomain または smarthr_url を確認してください。",
			"Check the setting smarthr_subdomain or smarthr_url.")
	case e.status == statusTooMany:
		return pick("リクエストの上限に達しました。", "The limit of requests is reached. ") +
			h.waiting(e, pick("数分待ってからやり直してください。", "Wait a few minutes and try again."))
	case e.status >= 500:
		return pick("SmartHRの一時的な障害です。", "SmartHR has a temporary failure. ") + h.waiting(e, later)
	}
	return pick("設定を確認してください。", "Check the settings.")
}

// untilLimitEnds returns the time for which the limits that were passed still hold: SmartHR has one for
// long and one for short periods.
func untilLimitEnds(r *pdk.HTTPResponse) time.Duration {
	wait := 0
	for _, limit := range []string{"X-Rate-Limit-", "X-Intensive-Rate-Limit-"} {
		if seconds, err := strconv.Atoi(r.Header[limit+"Reset"]); err == nil && r.Header[limit+"Remaining"] == "0" {
			wait = max(wait, seconds)
		}
	}
	return time.Duration(wait) * time.Second
}
