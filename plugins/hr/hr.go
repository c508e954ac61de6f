// Hr is the guest plugin of the tools list_employees, list_attendance and calculate_overtime, for companies that use
// freee HR, KING OF TIME or SmartHR.
//
// The configuration says which vendor a tenant uses. A vendor is one type (freee.go, kot.go, smarthr.go) that
// implements those interfaces of vendor.go that its API allows, so "no overtime" and "not known here" differ. It reads
// records with object (object.go) and converts them into the types of employee.go, attendance.go and overtime.go.
// Those types are the allow-list: a field that they lack never leaves the sandbox, also when a vendor adds one. A month
// is a calendar month everywhere, so companies that close on the 20th stay comparable.
package main

import (
	"context"
	"time"

	"github.com/hako-run/hako/pdk"
)

func init() {
	handle("list_employees", listEmployees)
	handle("list_attendance", listAttendance)
	handle("calculate_overtime", calculateOvertime)
}

func main() {}

// settings are the plugin's configuration; the manifest describes the keys.
type settings struct {
	Vendor                string   `json:"vendor"`
	FreeeURL              string   `json:"freee_url"`
	KOTURL                string   `json:"kot_url"`
	SmartHRURL            string   `json:"smarthr_url"`
	SmartHRSubdomain      string   `json:"smarthr_subdomain"`
	CompanyID             string   `json:"company_id"`
	IncludeEmploymentType bool     `json:"include_employment_type"`
	KOTEmploymentTypes    []string `json:"kot_employment_types"`
}

// defaultSettings are the manifest's defaults.
func defaultSettings() settings {
	return settings{
		Vendor:                "freee",
		FreeeURL:              "https://api.freee.co.jp/hr",
		KOTURL:                "https://api.kingtime.jp/v1.0",
		IncludeEmploymentType: true,
	}
}

// session is one call: who asks in which language, when, and of which vendor.
type session struct {
	settings
	lang   language
	now    time.Time // in Japan
	vendor vendor
}

// newSession reads the configuration and chooses the vendor. It fails if the configuration does not fit.
func newSession(ctx context.Context, now time.Time) (*session, error) {
	s := &session{settings: defaultSettings(), lang: languageOf(pdk.Locale(ctx)), now: now.In(jst)}
	if err := pdk.Config(ctx, &s.settings); err != nil {
		return nil, err
	}
	return s, s.chooseVendor()
}

// tool answers one tool's arguments with what becomes the structured content.
type tool[In any] func(context.Context, *session, In) (any, error)

func handle[In any](name string, answer tool[In]) {
	pdk.HandleTool(name, func(ctx context.Context, in In) (*pdk.Result, error) {
		s, err := newSession(ctx, time.Now())
		if err != nil {
			return failed(err), nil
		}
		out, err := answer(ctx, s, in)
		if err != nil {
			return failed(err), nil
		}
		return pdk.Structured(out), nil
	})
}
