package config

import (
	"cmp"
	"strings"

	"github.com/hako-run/hako/host/registry/signature"
	"github.com/hako-run/hako/internal/strictyaml"
)

// signatureTable lists the settings of o.
func signatureTable(o *signature.Options) []setting {
	return []setting{
		{key: "signatures.required", value: &o.Required},
		{key: "signatures.trustedRoot", value: &o.TrustedRoot, path: true},
	}
}

// signers reads whose signatures count for which repositories, by the operator's names for them.
func (r reader) signers(v strictyaml.Value) {
	r.config.Signatures.Trusted = map[string]signature.Trusted{}
	v.Map(func(name string, v strictyaml.Value) {
		var t signature.Trusted
		v.Object(strictyaml.Fields{
			"for":           strictyaml.Strings(&t.For),
			"key":           strictyaml.String(&t.Key),
			"issuer":        strictyaml.String(&t.Issuer),
			"subject":       strictyaml.String(&t.Subject),
			"subjectRegexp": strictyaml.String(&t.SubjectRegexp),
		})
		if err := t.Check(); err != nil {
			v.Problem("%v", err)
		}
		t.Key = absolute(t.Key, r.dir)
		r.config.Signatures.Trusted[name] = t
		r.note("signers."+name, cmp.Or(t.Key, t.Subject, t.SubjectRegexp)+" for "+strings.Join(t.For, ", "), v)
	})
}
