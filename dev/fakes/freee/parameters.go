package freee

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
)

const maxInt32 = 1<<31 - 1

// parameters reads a call's parameters by the schema's rules: what is unknown, missing, repeated or out of bounds is a
// bad request.
type parameters struct {
	*call
	failed bool
	known  []string
}

func (c *call) parameters() *parameters { return &parameters{call: c} }

func (p *parameters) fail(name string) {
	if !p.failed {
		p.bad("パラメータ " + name + " が不正です。")
	}
	p.failed = true
}

// value returns a path or query parameter; given is false without one.
func (p *parameters) value(name string) (value string, given bool) {
	if value := p.request.PathValue(name); value != "" {
		return value, true
	}
	p.known = append(p.known, name)
	values := p.request.URL.Query()[name]
	if len(values) > 1 {
		p.fail(name)
	}
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// integer reads a required integer.
func (p *parameters) integer(name string, low, high int) int {
	text, given := p.value(name)
	n, err := strconv.Atoi(text)
	if !given || err != nil || n < low || n > high {
		p.fail(name)
	}
	return n
}

func (p *parameters) optionalInteger(name string, low, high, otherwise int) int {
	if !p.request.URL.Query().Has(name) {
		p.known = append(p.known, name)
		return otherwise
	}
	return p.integer(name, low, high)
}

func (p *parameters) optionalBool(name string) bool {
	text, given := p.value(name)
	if given && text != "true" && text != "false" {
		p.fail(name)
	}
	return text == "true"
}

var datePattern = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)

// date reads a required date.
func (p *parameters) date(name string) string {
	text, _ := p.value(name)
	if _, err := time.Parse(dateLayout, text); err != nil || !datePattern.MatchString(text) {
		p.fail(name)
	}
	return text
}

// done reports that all is well; a parameter that was not asked for is a bad request.
func (p *parameters) done() bool {
	for name := range p.request.URL.Query() {
		if !slices.Contains(p.known, name) {
			p.fail(name)
		}
	}
	return !p.failed
}

// window is the page that limit and offset ask for.
type window struct{ limit, offset int }

func (p *parameters) window() window {
	return window{p.optionalInteger("limit", 1, 100, 50), p.optionalInteger("offset", 0, maxInt32, 0)}
}

func page[T any](all []T, w window) []T {
	from := min(w.offset, len(all))
	return all[from:min(from+w.limit, len(all))]
}

// company returns the company that the parameter names, or answers that there is none.
func (p *parameters) company() *Company {
	id := p.integer("company_id", 1, maxInt32)
	if p.failed {
		return nil
	}
	for _, c := range p.server.options.Companies {
		if c.ID == id {
			return c
		}
	}
	if !p.failed {
		fakehttp.JSON(p.call, http.StatusForbidden,
			map[string]any{"message": "アクセスする権限がありません", "code": "company_not_found"})
	}
	p.failed = true
	return nil
}
