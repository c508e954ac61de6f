package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/strictyaml"
)

// setting is one key with a single value or a list. It can be set in the file, in the environment and by a flag that a
// command has for it; the source of a secret only in the file.
type setting struct {
	key string
	// value points into the Config: to a string, []string, bool, int, int64 (a size in bytes), float64 (an amount),
	// time.Duration or secret.Source.
	value any
	// fallback is the default, as one would write it; empty means the zero value.
	fallback string
	// variables are environment variables besides the one that the key gives.
	variables []string
	// oneOf lists the allowed texts, if not all are.
	oneOf []string
	// path marks paths, which may be relative.
	path bool
	// rule, if set, checks a text instead of oneOf.
	rule func(string) error
}

// table lists the settings of c.
func (c *Config) table() []setting {
	return slices.Concat([]setting{
		{key: "plugins", value: &c.Plugins, path: true},
		{key: "shipped.enabled", value: &c.ShippedOn},
		{key: "shipped.disabled", value: &c.ShippedDisabled},
		{key: "allowPaths", value: &c.AllowPaths, path: true},
		{key: "consents", value: &c.Consents, fallback: "hako.consents.yaml", path: true},
		{key: "lock", value: &c.Lock, path: true},
		{key: "store", value: &c.Store, fallback: "hako.store", path: true, rule: checkStore},
		{key: "updates", value: &c.Updates, fallback: "ask", oneOf: []string{"ask", "same-permissions"}},
		{key: "cache", value: &c.Cache, path: true},
		{key: "locale", value: &c.Locale, fallback: "en"},
		{key: "mock", value: &c.Mock, variables: []string{"MOCK_MODE"}},
		{key: "maxPluginSize", value: &c.MaxPluginSize, fallback: "64MiB"},
		{key: "mountQuota", value: &c.MountQuota, fallback: "10GiB"},
		{key: "memoryBudget", value: &c.MemoryBudget, fallback: "2GiB"},
		{key: "policy", value: &c.Policy, fallback: "hako.policy.yaml", path: true},
		{key: "approvals.timeout", value: &c.ApprovalTimeout, fallback: "5m"},
		{key: "approvals.operators", value: &c.ApprovalOperators},
		{key: "secrets.key", value: &c.SecretsKey},
		{key: "audit.key", value: &c.Audit.Key},
		{key: "audit.disabled", value: &c.Audit.Disabled},
		{key: "audit.optional", value: &c.Audit.Optional},
		{key: "audit.sync", value: &c.Audit.Sync},
		{key: "audit.retain", value: &c.Audit.Retain},
		{key: "outbound.proxy", value: &c.Proxy, rule: checkProxy},
		{key: "shutdown.grace", value: &c.ShutdownGrace},
		{key: "metrics.address", value: &c.MetricsAddress},
		{key: "metrics.disabled", value: &c.MetricsDisabled},
		{key: "log.level", value: &c.LogLevel, fallback: "info", oneOf: []string{"debug", "info", "warn", "error"}},
		{key: "log.access", value: &c.LogAccess},
		{key: "log.format", value: &c.LogFormat, fallback: "text", oneOf: []string{"text", "json"}},
		{key: "toolset", value: &c.Toolset},
		{key: "results.disabled", value: &c.ResultsDisabled},
		{key: "results.perCaller", value: &c.Results.PerCaller, fallback: "16MiB"},
		{key: "results.total", value: &c.Results.Total, fallback: "64MiB"},
		{key: "results.lifetime", value: &c.Results.Lifetime, fallback: "1h"},
	}, c.Postgres.table(), signatureTable(&c.Signatures), c.Index.table(), c.Upstreams.table(), c.LLM.table(),
		c.Chat.table(), c.HTTP.table(), c.MCP.table(), c.Console.table(), c.Traces.table(), agentTable(&c.Agent),
		limits("limits.", &c.Limits), limits("ceilings.", &c.Ceilings))
}

// limits are the settings of l below prefix.
func limits(prefix string, l *manifest.Limits) []setting {
	return []setting{
		{key: prefix + "time", value: &l.Time},
		{key: prefix + "cpu", value: &l.CPU},
		{key: prefix + "memory", value: &l.Memory},
		{key: prefix + "input", value: &l.Input},
		{key: prefix + "output", value: &l.Output},
		{key: prefix + "log", value: &l.Log},
		{key: prefix + "concurrency", value: &l.Concurrency},
		{key: prefix + "queue", value: &l.Queue},
		{key: prefix + "queueWait", value: &l.QueueWait},
		{key: prefix + "rate", value: &l.Rate},
		{key: prefix + "openFiles", value: &l.OpenFiles},
		{key: prefix + "requests", value: &l.Requests},
		{key: prefix + "calls", value: &l.Calls},
		{key: prefix + "parallelCalls", value: &l.ParallelCalls},
	}
}

// variable is the environment variable for a key: "mcp.limits.sessionIdle" is HAKO_MCP_LIMITS_SESSION_IDLE.
func variable(key string) string {
	words := wordEnd().ReplaceAllString(key, "${1}_${2}")
	return prefix + strings.ToUpper(strings.ReplaceAll(words, ".", "_"))
}

// environment lists the variables that set s. A secret's source has none, because {env: HAKO_AUDIT_KEY} is how the file
// names a variable with the secret itself.
func (s setting) environment() []string {
	if s.isSecret() {
		return nil
	}
	return append([]string{variable(s.key)}, s.variables...)
}

// isSecret reports whether the value is where a secret comes from.
func (s setting) isSecret() bool {
	_, ok := s.value.(*secret.Source)
	return ok
}

var wordEnd = lazyregexp.New(`([a-z])([A-Z])`)

// read reads the setting from the file, unless it is the source of a secret.
func (s setting) read(v strictyaml.Value) {
	switch value := s.value.(type) {
	case *string:
		strictyaml.String(value)(v)
	case *[]string:
		strictyaml.Strings(value)(v)
	case *bool:
		strictyaml.Bool(value)(v)
	case *int:
		strictyaml.Count(value)(v)
	case *int64:
		strictyaml.Size(value)(v)
	case *float64:
		amount(value)(v)
	case *time.Duration:
		strictyaml.Duration(value)(v)
	}
	if err := s.check(); err != nil {
		v.Problem("%v", err)
	}
}

// switches are what programs write into the environment for true and false (pydantic's settings, systemd, git), in lower
// case.
var switches = map[string]bool{"true": true, "1": true, "yes": true, "y": true, "on": true, "t": true,
	"false": false, "0": false, "no": false, "n": false, "off": false, "f": false}

// parse reads the setting from text, by the same rules as in the file. Lists are separated as PATH is for paths, else
// by commas. The file has true and false alone, and here all switches do.
func (s setting) parse(text string) error {
	switch value := s.value.(type) {
	case *string:
		*value = text
		return s.check()
	case *[]string:
		*value = s.split(text)
		return nil
	case *bool:
		on, ok := switches[strings.ToLower(strings.TrimSpace(text))]
		if !ok {
			return errors.New("must be true or false; 1 and 0, yes and no, on and off mean the same")
		}
		*value = on
		return nil
	}
	err := strictyaml.Read([]byte(text), 1<<10, s.read, nil)
	var list *strictyaml.Error
	if errors.As(err, &list) && len(list.Problems) > 0 {
		return errors.New(list.Problems[0].Message)
	}
	return err
}

func (s setting) split(text string) []string {
	if s.path {
		return filepath.SplitList(text)
	}
	items := strings.Split(text, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

func (s setting) check() error {
	text, ok := s.value.(*string)
	if s.rule != nil {
		return s.rule(*text)
	}
	if !ok || *text == "" || len(s.oneOf) == 0 || slices.Contains(s.oneOf, *text) {
		return nil
	}
	if near := strictyaml.Nearest(*text, s.oneOf); near != "" {
		return fmt.Errorf("%q is not allowed: did you mean %q?", *text, near)
	}
	return fmt.Errorf("%q is not allowed: must be %s", *text, strings.Join(s.oneOf, " or "))
}

// raw returns the value.
func (s setting) raw() any { return reflect.ValueOf(s.value).Elem().Interface() }

// text is the value as one would write it in the file; empty where nothing is set.
func (s setting) text() string {
	switch value := s.value.(type) {
	case *string:
		return withoutPassword(*value)
	case *[]string:
		return nonzero(len(*value) == 0, "["+strings.Join(*value, ", ")+"]")
	case *bool:
		return strconv.FormatBool(*value)
	case *int:
		return nonzero(*value == 0, strconv.Itoa(*value))
	case *int64:
		return nonzero(*value == 0, strictyaml.FormatSize(*value))
	case *float64:
		return nonzero(*value == 0, strconv.FormatFloat(*value, 'f', -1, 64))
	case *time.Duration:
		return nonzero(*value == 0, value.String())
	case *secret.Source:
		return nonzero(value.IsZero(), value.String())
	}
	return ""
}

// defaultText is the default like text, empty for paths and where there is none.
func (s setting) defaultText() string {
	s.value = reflect.New(reflect.TypeOf(s.value).Elem()).Interface()
	if s.fallback == "" || s.path || s.parse(s.fallback) != nil {
		return ""
	}
	return s.text()
}

func nonzero(zero bool, text string) string {
	if zero {
		return ""
	}
	return text
}
