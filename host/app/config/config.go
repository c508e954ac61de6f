// Package config loads hako's settings from flags, the environment, a file and the defaults, in this order of
// precedence, and records the origin of each value.
//
// Load reads a Source and returns a Config. The methods table have one row for each key;
// docs/configuration.md describes the keys.
package config

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/frontend/agent"
	"github.com/hako-run/hako/host/frontend/slackbot"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/results"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/registry/lock"
	"github.com/hako-run/hako/host/registry/signature"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/wholefile"
)

// FileName is the file that is read from the working directory where none is named.
const FileName = "hako.yaml"

// Config is the effective configuration. Paths in it are absolute.
type Config struct {
	// File is the configuration file; empty means the built-in default.
	File string
	// Dir is the directory for relative paths in it, also for those in files that it names.
	Dir string
	// Warnings are about settings that have no effect.
	Warnings []string

	Plugins   []string
	ShippedOn bool
	// ShippedDisabled names shipped plugins that are not offered.
	ShippedDisabled []string
	ShippedMounts   map[string]string
	// AllowPaths are directories for the plugins that ask for roots.
	AllowPaths    []string
	Consents      string
	Lock          string
	Updates       string
	Cache         string
	Locale        string
	Mock          bool
	MaxPluginSize int64
	MountQuota    int64
	MemoryBudget  int64

	// ShutdownGrace is the time that calls in flight have to answer after a signal to stop. Zero means as long as the
	// longest call may take.
	ShutdownGrace time.Duration

	// Proxy is for the HTTP requests of plugins; empty means none.
	Proxy string

	// Registries are settings for single registries that plugins come from, by host.
	Registries map[string]registry.Host
	// Signatures configures whose signatures plugins from registries need.
	Signatures signature.Options

	Index     Index
	Upstreams Upstreams
	LLM       LLM
	Chat      Chat
	// Results bounds what is kept of results that are too large to pass on at once. ResultsDisabled keeps none.
	Results         results.Options
	ResultsDisabled bool
	// Slack are the workspaces that the bot is in.
	Slack []slackbot.Workspace
	// Agent is about managed agents.
	Agent agent.Spec

	// Policy is the file with the policy, which need not exist.
	Policy          string
	ApprovalTimeout time.Duration
	// ApprovalOperators reports whether operators always look at questions.
	ApprovalOperators bool
	Audit             Audit

	HTTP           HTTP
	MCP            MCP
	Console        Console
	MetricsAddress string
	// MetricsDisabled counts nothing.
	MetricsDisabled bool
	Traces          Traces
	LogLevel        string
	LogFormat       string
	// LogAccess logs each HTTP request.
	LogAccess bool

	// Limits are set for all plugins. Ceilings are the most that manifests get.
	Limits, Ceilings manifest.Limits
	// Plugin holds the settings of single plugins, by name.
	Plugin map[string]host.Settings
	// Store is the directory of hako's own state, or the URL of a PostgreSQL database, which replicas share.
	Store    string
	Postgres Postgres
	// Credentials are for every tenant; TenantCredentials are for single ones, by tenant.
	Credentials       map[string]credential.Spec
	TenantCredentials map[string]map[string]credential.Spec
	// SecretsKey is the source of the key of stored credentials; zero means a file in the store.
	SecretsKey secret.Source
	// Toolsets are the selections of the catalog that callers are offered. Nil offers everything to everyone. Toolset
	// is Toolsets.Local.
	Toolsets *toolset.Config
	Toolset  string
	// Tenants holds the settings for single tenants, by name.
	Tenants map[string]host.Tenant

	// Secrets are all that the file names, in its order.
	Secrets []Secret

	settings []setting
	// origins are the sources of the settings, by key; nested are the values that are no settings.
	origins map[string]string
	nested  []Entry
	// leaves are the single values of the file that are no settings, by key.
	leaves map[string]string
}

// Audit configures the audit log, which is in the store.
type Audit struct {
	// Disabled records nothing. Optional answers calls that could not be recorded.
	Disabled, Optional bool
	// Key is the source of the log's key, if the log lies in a store that replicas share.
	Key secret.Source
	// Sync waits until each record is on the disk.
	Sync bool
	// Retain is for how long records are kept. Zero means for ever.
	Retain time.Duration
	// Fields are the arguments that are recorded as they are, by tool.
	Fields map[string][]string
}

// Source holds the places of settings.
type Source struct {
	// Dir is the directory that relative paths in flags and the environment start from, and where FileName is looked
	// for. Empty means the process's working directory.
	Dir string
	// File is a configuration file that must exist. Empty means the one that HAKO_CONFIG names, else FileName in Dir if
	// it exists, else Default.
	File string
	// Default is the configuration that applies where there is no file, as if it were Dir's FileName.
	Default []byte
	// Flags are those of the command being run. Those made with Flag count, where the user has set them.
	Flags *pflag.FlagSet
}

// Load reads the configuration. The error names each setting that is wrong, and where it was set: unknown keys, with
// the one that was probably meant, values of a wrong type or outside of what is allowed, and a file that is missing or
// cannot be read.
func Load(source Source) (*Config, error) {
	dir, err := filepath.Abs(source.Dir)
	if err != nil {
		return nil, err
	}
	text, path, err := source.text(dir)
	if err != nil {
		return nil, err
	}
	c := &Config{File: path, ShippedMounts: map[string]string{}, Plugin: map[string]host.Settings{},
		Tenants: map[string]host.Tenant{}, origins: map[string]string{},
		TenantCredentials: map[string]map[string]credential.Spec{}}
	c.Audit.Fields = map[string][]string{}
	c.settings = c.table()
	// Relative paths in the file start where it lies, and so do defaults: what belongs together stays together.
	fileDir := dir
	if path != "" {
		fileDir = filepath.Dir(path)
	}
	c.Dir = fileDir
	if err := setDotEnv(fileDir); err != nil {
		return nil, err
	}
	if err := c.read(text, fileDir); err != nil {
		return nil, err
	}
	c.leaves = c.leavesOf(text)
	if err := c.layer(source.Flags, fileDir); err != nil {
		return nil, err
	}
	if err := c.chooseToolset(); err != nil {
		return nil, err
	}
	c.HTTP.OAuth.Proxy, c.Console.OIDC.Proxy = c.ProxyURL(), c.ProxyURL()
	c.resolve(dir)
	if err := c.resolveIndexes(); err != nil {
		return nil, err
	}
	if err := c.Signatures.Check(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	c.Warnings = unknownVariables(os.Environ(), c.settings, c.Secrets)
	return c, c.placeCache()
}

// Path is the file that Load would read now, if it is there.
func (s Source) Path() (string, error) {
	dir, err := filepath.Abs(s.Dir)
	return absolute(cmp.Or(s.File, os.Getenv(fileVariable), FileName), dir), err
}

// Digest returns a digest of what Load would read now. Unreadable content has a digest too.
func (s Source) Digest() string {
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return err.Error()
	}
	text, path, err := s.text(dir)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %x", path, sha256.Sum256(text))
}

// text returns the configuration file and its absolute path, or the default with no path.
func (s Source) text(dir string) ([]byte, string, error) {
	named := cmp.Or(s.File, os.Getenv(fileVariable))
	path := absolute(cmp.Or(named, FileName), dir)
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		return text, path, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, "", fmt.Errorf("configuration: %w", err)
	case named == "":
		return s.Default, "", nil
	}
	return nil, "", fmt.Errorf(
		"configuration file %s does not exist: name another with --config, "+
			"or leave it out for ./%s or the built-in default",
		path,
		FileName,
	)
}

// resolve makes the settings that are relative paths start at dir.
func (c *Config) resolve(dir string) {
	for _, s := range c.settings {
		if !s.path {
			continue
		}
		switch value := s.value.(type) {
		case *string:
			*value = absolute(*value, dir)
		case *[]string:
			for i := range *value {
				(*value)[i] = absolute((*value)[i], dir)
			}
		}
	}
}

// placeCache gives the cache its default, which depends on the system.
func (c *Config) placeCache() error {
	if c.Cache != "" {
		return nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("no directory for the cache: %w: set cache, or HAKO_CACHE", err)
	}
	c.Cache = filepath.Join(base, "hako")
	return nil
}

// absolute returns path as it is seen from dir. An empty path stays empty, and so does the URL of a database as it is.
func absolute(path, dir string) string {
	if path == "" || filepath.IsAbs(path) || store.IsURL(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// LockFile is the path of the lock file of the first plugin folder. By default it is beside the consents.
func (c *Config) LockFile() string {
	return cmp.Or(c.Lock, filepath.Join(filepath.Dir(c.Consents), lock.FileName))
}

// OwnFiles are the files and directories that make up the configuration, hold secrets or are hako's state, whether they
// exist or not.
func (c *Config) OwnFiles() []string {
	files := []string{
		cmp.Or(c.File, filepath.Join(c.Dir, FileName)), filepath.Join(c.Dir, dotEnvName),
		c.Consents, c.Consents + wholefile.LockSuffix, c.LockFile(), c.LockFile() + wholefile.LockSuffix,
		c.Policy, c.UpstreamsFile(), c.StateDir(), c.Cache, c.HTTP.TLSKey, c.Signatures.TrustedRoot,
	}
	for _, signer := range c.Signatures.Trusted {
		files = append(files, signer.Key)
	}
	if proposals := policy.ProposalsPath(c.Policy); proposals != "" {
		files = append(files, proposals, proposals+wholefile.LockSuffix)
	}
	for _, secret := range c.Secrets {
		files = append(files, absolute(secret.Source.File, c.Dir))
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}
