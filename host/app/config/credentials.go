package config

import (
	"cmp"

	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/strictyaml"
)

// credentialName is the rule for names of credentials, the same as for permissions.
var credentialName = lazyregexp.New(`^[a-z][a-z0-9-]{0,39}$`)

// credentials reads what is below "credentials" into specs, which is made if it is nil. No values of secrets are in the
// file, so all of it may be shown.
func (r reader) credentials(prefix string, specs *map[string]credential.Spec) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		v.Map(func(name string, v strictyaml.Value) {
			if !credentialName().MatchString(name) {
				v.Problem(`the name of a credential must be 1 to 40 of a-z, 0-9 and "-", starting with a letter`)
			}
			if *specs == nil {
				*specs = map[string]credential.Spec{}
			}
			spec := r.credential(v)
			if err := spec.Check(); err != nil {
				v.Problem("%v", err)
			}
			(*specs)[name] = spec
			r.note(prefix+name, cmp.Or(spec.Provider, spec.Token.String()), v)
		})
	}
}

func (r reader) credential(v strictyaml.Value) (s credential.Spec) {
	v.Object(strictyaml.Fields{
		"provider":     strictyaml.String(&s.Provider),
		"token":        r.source(&s.Token),
		"header":       strictyaml.String(&s.Header),
		"scheme":       strictyaml.String(&s.Scheme),
		"clientId":     strictyaml.String(&s.ClientID),
		"clientSecret": r.source(&s.ClientSecret),
		"scopes":       strictyaml.Strings(&s.Scopes),
		"authorizeUrl": strictyaml.String(&s.AuthorizeURL),
		"tokenUrl":     strictyaml.String(&s.TokenURL),
		"deviceUrl":    strictyaml.String(&s.DeviceURL),
		"redirectUrl":  strictyaml.String(&s.RedirectURL),
		"key":          r.source(&s.Key),
		"subject":      strictyaml.String(&s.Subject),
		"resource":     strictyaml.String(&s.Resource),
	})
	return s
}

// Secret is a secret whose source is in the configuration file.
type Secret struct {
	// Key is its key in the configuration, such as "credentials.kot.token".
	Key    string
	Source secret.Source
}

// source reads where a secret comes from.
func (r reader) source(dst *secret.Source) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		if v.IsText() {
			v.Problem("must say where the secret is, not what it is: {env: NAME}, {file: PATH} or {command: [PROGRAM, ARGUMENT]}")
			return
		}
		v.Object(strictyaml.Fields{
			"env":     strictyaml.String(&dst.Env),
			"file":    strictyaml.String(&dst.File),
			"command": strictyaml.Strings(&dst.Command),
		})
		dst.File = absolute(dst.File, r.dir)
		r.config.Secrets = append(r.config.Secrets, Secret{v.Path(), *dst})
	}
}

// requiredSource is like source, and refuses a source that names nothing or several things.
func (r reader) requiredSource(dst *secret.Source) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		r.source(dst)(v)
		if err := dst.Check(); err != nil && !v.IsText() && !v.IsList() {
			v.Problem("%v", err)
		}
	}
}
