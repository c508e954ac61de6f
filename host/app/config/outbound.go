package config

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"

	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/internal/strictyaml"
)

// proxySchemes are those of proxies that requests can go through.
var proxySchemes = []string{"http", "https", "socks5"}

func checkProxy(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || !slices.Contains(proxySchemes, u.Scheme) || u.Hostname() == "" || u.Path != "" && u.Path != "/" ||
		u.RawQuery != "" {
		// The error does not repeat the text, which may hold a password.
		return errors.New(`must be the URL of a proxy, such as "http://proxy.example.com:3128": http, https or socks5`)
	}
	return nil
}

// ProxyURL is the proxy for the HTTP requests of plugins; nil if there is none.
func (c *Config) ProxyURL() *url.URL {
	if c.Proxy == "" {
		return nil
	}
	u, err := url.Parse(c.Proxy)
	if err != nil {
		panic(err) // it has been checked
	}
	return u
}

// Bounds of what is set for one HTTP permission.
const (
	maxRetries = 10
	maxRate    = 100_000
)

// rules reads what is set for single HTTP permissions of a plugin.
func (r reader) rules(prefix string, rules *map[string]httpbroker.RuleOptions) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		*rules = map[string]httpbroker.RuleOptions{}
		v.Map(func(name string, v strictyaml.Value) {
			var o httpbroker.RuleOptions
			key := prefix + name
			v.Object(strictyaml.Fields{
				"retries": func(v strictyaml.Value) {
					n := r.number(key+".retries", v, 0, maxRetries, true)
					if o.Retries = int(n); o.Retries == 0 {
						o.Retries = -1 // which is none there
					}
				},
				"rate":  func(v strictyaml.Value) { o.Rate = r.number(key+".rate", v, 0.001, maxRate, false) },
				"burst": func(v strictyaml.Value) { o.Burst = int(r.number(key+".burst", v, 1, maxRate, true)) },
				"trace": func(v strictyaml.Value) {
					strictyaml.Bool(&o.Trace)(v)
					r.note(key+".trace", strconv.FormatBool(o.Trace), v)
				},
			})
			if o.Burst > 0 && o.Rate == 0 {
				v.Problem("burst is how many requests of a rate go out at once: state the rate too")
			}
			(*rules)[name] = o
		})
	}
}

// number reads a number from least to most, and notes it.
func (r reader) number(key string, v strictyaml.Value, least, most float64, whole bool) float64 {
	text := v.JSON()
	if text == nil {
		return 0 // reported
	}
	var n float64
	if err := json.Unmarshal(text, &n); err != nil || n < least || n > most || whole && n != float64(int(n)) {
		kind := "number"
		if whole {
			kind = "whole number"
		}
		v.Problem("must be a %s from %v to %v", kind, least, most)
		return 0
	}
	r.note(key, string(text), v)
	return n
}
