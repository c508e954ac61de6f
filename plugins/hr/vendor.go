package main

import (
	"context"
	"maps"
	"slices"
)

// vendor is a service that holds a company's HR data. What it can do is found by asserting the interfaces below.
type vendor interface {
	// title is the vendor's name for people.
	title() string
}

// companies is the ability to hold several companies under one credential.
type companies interface {
	selectCompany(id string) error
	// selectedCompany is the id of the company that the call is about, once that is known.
	selectedCompany() string
}

// employeeLister is the capability behind list_employees.
type employeeLister interface {
	// statuses are those that the vendor reports.
	statuses() []string
	// employees returns everybody, also those who have left, as they are today.
	employees(ctx context.Context) (*roster, error)
	// members returns everybody with the departments of a day. What else is said of a person may be missing.
	members(ctx context.Context, on date) (*roster, error)
}

// attendanceLister is the capability behind list_attendance.
type attendanceLister interface {
	// attendance reads the days of people, in the order of their ids. An error is one that is not about a single
	// person.
	attendance(ctx context.Context, ids []string, m month) ([]result[attendance], error)
}

// overtimeCalculator is the capability behind calculate_overtime.
type overtimeCalculator interface {
	// overtime reads the figures of people, in the order of their ids. An error is one that is not about a single
	// person.
	overtime(ctx context.Context, ids []string, m month) ([]result[overtime], error)
}

var vendors = map[string]func(*session) (vendor, error){
	"freee":   newFreee,
	"kot":     newKOT,
	"smarthr": newSmartHR,
}

func (s *session) chooseVendor() (err error) {
	open, ok := vendors[s.Vendor]
	if !ok {
		return s.lang.errorf("設定 vendor の値 %q は使えません。次のどれかにしてください: %s",
			"the setting vendor is %q and must be one of: %s", s.Vendor, s.lang.list(slices.Sorted(maps.Keys(vendors))))
	}
	s.vendor, err = open(s)
	return err
}

// chooseCompany chooses the company that the call is about: that of the argument, else that of the configuration, else
// the vendor's own idea of a default.
func (s *session) chooseCompany(argument string) error {
	if c, ok := s.vendor.(companies); ok {
		if argument == "" {
			argument = s.CompanyID
		}
		return c.selectCompany(argument)
	}
	if argument != "" {
		return s.lang.errorf("%sには事業所IDの指定がありません（事業所は認証情報で決まります）。company_id を省いてください。",
			"%s takes no company id, because its credential decides the company: leave company_id out",
			s.vendor.title())
	}
	return nil
}

// unsupported is the error of a tool that the vendor's API has no data for.
func (s *session) unsupported(tool string) error {
	return s.lang.errorf("%sのAPIには %s のためのデータがありません。この事業所で使えるツール: %s",
		"the API of %s has no data for %s. Tools that work with it: %s", s.vendor.title(), tool,
		s.lang.list(s.supported()))
}

// supported returns the names of the tools that the vendor can serve.
func (s *session) supported() []string {
	var tools []string
	if _, ok := s.vendor.(employeeLister); ok {
		tools = append(tools, "list_employees")
	}
	if _, ok := s.vendor.(attendanceLister); ok {
		tools = append(tools, "list_attendance")
	}
	if _, ok := s.vendor.(overtimeCalculator); ok {
		tools = append(tools, "calculate_overtime")
	}
	return tools
}
