package grant

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/glob"
	"github.com/hako-run/hako/internal/strictyaml"
)

// Consent is the operator's recorded approval of one plugin: of one file, by its digest, and of the permissions that it
// asked for.
type Consent struct {
	// Name is the plugin's name. A File has at most one Consent for a plugin.
	Name    string
	Version string
	// Digest is the digest of the plugin's file, in the form of wasmfile.Module.
	Digest string
	// Asked are the permissions that the plugin asked for, without their reasons.
	Asked manifest.Permissions

	// ApprovedAt is recorded to the second. ApprovedBy names the person or the rule that approved the plugin.
	ApprovedAt time.Time
	ApprovedBy string
	// RevokedAt is the time of the revocation. Zero means that the consent is in force.
	RevokedAt time.Time
	RevokedBy string

	// Mounts are the folders for the plugin's mounts, by the mount's name. A relative Path is relative to the directory
	// of the consent file.
	Mounts map[string]Mount
	// HTTP are the operator's settings for HTTP permissions, by the permission's name. Permissions without settings are
	// granted as asked.
	HTTP map[string]HTTPMapping
	// Exec are the operator's settings for commands. It names programs if the plugin asks for commands.
	Exec Exec
	// Note is the operator's comment.
	Note string

	// dir is the directory of the consent file.
	dir string
}

// Declined reports whether the plugin was never approved and is not wanted; see File.Decline.
func (c *Consent) Declined() bool {
	return !c.RevokedAt.IsZero() && c.ApprovedBy == "" && c.ApprovedAt.IsZero()
}

// HTTPMapping are the operator's settings for one HTTP permission.
type HTTPMapping struct {
	// URL, if not empty, is granted instead of the URL in the manifest: a narrower one, or another server.
	URL string `json:"url"`
	// Private allows addresses that are not public, as in HTTPRule.
	Private bool `json:"private"`
	// Credential, if not empty, is applied instead of the one that the plugin asks for. A plugin that asks for none
	// gets none.
	Credential string `json:"credential"`
}

// check checks that the consent can be recorded and, unless it is revoked, is complete.
func (c *Consent) check() error {
	var errs []error
	if !manifest.ValidName(c.Name) {
		errs = append(errs, fmt.Errorf("consent for plugin %q: the name is not a valid plugin name", c.Name))
	}
	if !wasmfile.ValidDigest(c.Digest) {
		errs = append(errs, fmt.Errorf("consent for plugin %s: the digest must be sha256: and 64 hexadecimal digits",
			c.Name))
	}
	return errors.Join(append(errs, c.checkMounts(), c.checkHTTP(), c.checkExec())...)
}

func (c *Consent) checkMounts() error {
	var errs []error
	var asked []string
	for _, p := range c.Asked.Files {
		asked = append(asked, p.Mount)
		if _, ok := c.Mounts[p.Mount]; !ok && c.RevokedAt.IsZero() {
			errs = append(errs, notMapped(c.Name, p.Mount))
		}
	}
	for _, name := range sortedKeys(c.Mounts) {
		m := c.Mounts[name]
		switch {
		case !slices.Contains(asked, name):
			errs = append(errs, fmt.Errorf("plugin %s: %s", c.Name, strictyaml.Unknown("mount", name, asked)))
		case m.Path == "" || strings.HasPrefix(m.Path, "~") || strings.ContainsRune(m.Path, 0):
			errs = append(errs, mountError(c.Name, name, bilingual(`the folder must be written out, without "~"`,
				`フォルダーは「~」を使わずにすべて書いてください`)))
		case m.Quota < 0:
			errs = append(errs, fmt.Errorf("plugin %s: mount %s: the quota must not be below zero", c.Name, name))
		}
		for _, pattern := range m.Deny {
			if !glob.Valid(pattern) {
				errs = append(errs, fmt.Errorf("plugin %s: mount %s: deny: %q is not a valid glob, "+
					"or has more than four groups in braces", c.Name, name, pattern))
			}
		}
	}
	return errors.Join(errs...)
}

func notMapped(plugin, mount string) error {
	return choiceError("mounts."+mount+".dir", bilingual("choose a folder", "フォルダーを指定してください"),
		fmt.Sprintf("plugin %[1]s: mount %[2]q is not mapped to a folder: choose one with --mount %[2]s=DIR", plugin, mount))
}

func (c *Consent) checkHTTP() error {
	var errs []error
	var asked []string
	credentials := map[string]string{}
	for _, p := range c.Asked.HTTP {
		asked = append(asked, p.Name)
		credentials[p.Name] = p.Credential
	}
	for _, name := range sortedKeys(c.HTTP) {
		if !slices.Contains(asked, name) {
			errs = append(errs, fmt.Errorf("plugin %s: %s", c.Name, strictyaml.Unknown("HTTP permission", name, asked)))
		}
		if text := checkCredential(c.HTTP[name].Credential, credentials[name]); text != nil {
			errs = append(errs, httpError(c.Name, name, "credential", text))
		}
		if to := c.HTTP[name].URL; to != "" {
			if _, err := manifest.ParseBaseURL(to); err != nil {
				errs = append(errs, httpError(c.Name, name, "url", bilingual("url %q %v",
					"%q は「https://api.example.com/v1/」のような URL ではありません (%v)", to, err)))
			}
		}
	}
	return errors.Join(errs...)
}

// checkCredential returns why a credential cannot replace the one that the plugin asks for, or nil.
func checkCredential(mapped, asked string) manifest.Text {
	switch {
	case mapped == "":
		return nil
	case asked == "":
		return bilingual("the plugin asks for no credential there: remove %q",
			"このプラグインは認証情報を求めていません。%q を削除してください", mapped)
	case !manifest.ValidName(mapped):
		return bilingual(`%q is not a credential name: 1 to 40 of a-z, 0-9 and "-", starting with a letter`,
			"%q は認証情報の名前ではありません。英小文字で始まる 1～40 文字の英小文字、数字、「-」を指定してください", mapped)
	}
	return nil
}

// SetFolder sets the folder of a mount. If file, the path of the consent file, is not empty and the folder is below its
// directory, the folder is stored relative to it, so that both can be moved together.
func (c *Consent) SetFolder(mount, dir, file string) {
	m := c.Mounts[mount]
	m.Path = dir
	if file != "" {
		base, err := filepath.EvalSymlinks(filepath.Dir(file))
		if err != nil {
			base = filepath.Dir(file)
		}
		if relative, err := filepath.Rel(base, dir); err == nil && filepath.IsLocal(relative) {
			m.Path = filepath.ToSlash(relative)
		}
	}
	c.Mounts[mount] = m
}
