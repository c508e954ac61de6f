package signature

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/internal/wholefile"
)

// Trusted is somebody whose signatures the operator accepts: the holder of a key, or an identity.
type Trusted struct {
	// For are the repositories for which a signature of this signer, or another one that is trusted for them, is
	// needed: "registry.example.com/tools/weather", or with "/*" at the end all below, or "*" for all of all
	// registries. They are for every name and spelling of a registry (registry.Reference.SameRegistry).
	For []string
	// Key is a PEM file with a public key: ECDSA, Ed25519 or RSA.
	Key string
	// Issuer is the OpenID Connect issuer that vouched for the identity, exactly as it is in the certificate.
	Issuer string
	// Subject is the identity, such as an e-mail address or the URL of a workflow, exactly as it is in the certificate.
	Subject string
	// SubjectRegexp matches whole subjects. It is for subjects with changing parts, such as the tag that a workflow ran
	// for.
	SubjectRegexp string
}

// Check reports what is wrong with t, without reading files.
func (t Trusted) Check() error {
	identity := t.Issuer != "" || t.Subject != "" || t.SubjectRegexp != ""
	switch {
	case len(t.For) == 0:
		return errors.New("for must list the repositories that this signer signs for")
	case (t.Key != "") == identity:
		return errors.New("must have a key, or an issuer with a subject")
	case identity && (t.Issuer == "" || (t.Subject == "") == (t.SubjectRegexp == "")):
		return errors.New(
			"an identity is an issuer with a subject or a subjectRegexp: anybody can have the same subject " +
				"at another issuer")
	}
	if _, err := t.subjectRegexp(); err != nil {
		return fmt.Errorf("subjectRegexp: %w", err)
	}
	for _, pattern := range t.For {
		if _, err := parsePattern(pattern); err != nil {
			return err
		}
	}
	return nil
}

// subjectRegexp matches whole subjects, whatever SubjectRegexp is anchored to.
func (t Trusted) subjectRegexp() (*regexp.Regexp, error) {
	if _, err := regexp.Compile(t.SubjectRegexp); err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + t.SubjectRegexp + `)\z`)
}

// pattern stands for repositories.
type pattern struct {
	registry.Reference
	// below is set for everything below the repository, or below the registry if that has no name. All is set for "*".
	below, all bool
}

func parsePattern(text string) (p pattern, err error) {
	if text == "*" {
		return pattern{all: true}, nil
	}
	const child = "x/x" // Docker Hub gives repositories without a namespace another name
	name, below := strings.CutSuffix(text, "/*")
	if below {
		name += "/" + child
	}
	p.below = below
	p.Reference, err = registry.ParseReference(name + ":x") // which refuses patterns that have a tag or a digest
	if err != nil || registry.HasScheme(text) {
		return p, fmt.Errorf(`%q is not a repository pattern: write registry.example.com/tools/weather, `+
			`registry.example.com/tools/* or "*"`, text)
	}
	if below {
		p.Repository = strings.TrimSuffix(p.Repository, child)
	}
	return p, nil
}

func (p pattern) matches(r registry.Reference) bool {
	switch {
	case p.all:
		return true
	case !p.SameRegistry(r):
		return false
	case p.below:
		return strings.HasPrefix(r.Repository, p.Repository)
	}
	return p.Repository == r.Repository
}

// Options configures a Policy.
type Options struct {
	// Trusted are the signers by name, which is the operator's name for them.
	Trusted map[string]Trusted
	// TrustedRoot is a file in Sigstore's format trusted_root.json: the certificate authorities, transparency logs and
	// timestamp authorities of the Sigstore instance whose certificates count for identities.
	TrustedRoot string
	// Required refuses what no signer is trusted for.
	Required bool
}

// Check reports what is wrong with the options, without reading files.
func (o Options) Check() error {
	for _, name := range slices.Sorted(maps.Keys(o.Trusted)) {
		t := o.Trusted[name]
		if err := t.Check(); err != nil {
			return fmt.Errorf("signers.%s: %w", name, err)
		}
		if t.Key == "" && o.TrustedRoot == "" {
			return fmt.Errorf(
				"signers.%s is an identity, and signatures.trustedRoot names no trusted_root.json, which "+
					"says whose certificates count: write one with cosign trusted-root create, or gh attestation trusted-root "+
					"for Sigstore's public instance", name)
		}
	}
	return nil
}

// Policy holds whose signatures are needed for which repositories. NewPolicy makes one; it is safe for concurrent use.
// A nil Policy needs none.
type Policy struct {
	signers  []*trustedSigner
	required bool
	// instance verifies certificates. It is read when it is needed.
	instance func() (*verify.Verifier, error)
}

// trustedSigner is a Trusted in the form that verifying needs.
type trustedSigner struct {
	Trusted
	Name     string
	patterns []pattern
	key      *PublicKey                 // or
	identity verify.CertificateIdentity // if key is nil
}

// NewPolicy reads the files that the options name. It fails if one of them cannot be read, or the options are wrong.
func NewPolicy(o Options) (*Policy, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	p := &Policy{required: o.Required, instance: sync.OnceValues(func() (*verify.Verifier, error) {
		return readInstance(o.TrustedRoot)
	})}
	for _, name := range slices.Sorted(maps.Keys(o.Trusted)) {
		s, err := newTrustedSigner(name, o.Trusted[name])
		if err != nil {
			return nil, fmt.Errorf("signers.%s: %w", name, err)
		}
		p.signers = append(p.signers, s)
	}
	return p, nil
}

func newTrustedSigner(name string, t Trusted) (*trustedSigner, error) {
	s := &trustedSigner{Trusted: t, Name: name}
	for _, text := range t.For {
		p, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		s.patterns = append(s.patterns, p)
	}
	var err error
	if t.Key != "" {
		s.key, err = ReadPublicKey(t.Key)
		return s, err
	}
	expression := ""
	if t.SubjectRegexp != "" {
		anchored, err := t.subjectRegexp()
		if err != nil {
			return nil, err
		}
		expression = anchored.String()
	}
	s.identity, err = verify.NewShortCertificateIdentity(t.Issuer, "", t.Subject, expression)
	return s, err
}

// readInstance returns a verifier for the certificates of a Sigstore instance. What the instance has is demanded: an
// entry in its transparency log, a timestamp of the log or a timestamp authority, and the certificate's entry in its
// log of certificates.
func readInstance(file string) (*verify.Verifier, error) {
	text, err := readSmall(file)
	if err != nil {
		return nil, fmt.Errorf("signatures.trustedRoot: %w", err)
	}
	trusted, err := root.NewTrustedRootFromJSON(text)
	if err != nil {
		return nil, fmt.Errorf("signatures.trustedRoot: %s is not a trusted_root.json of Sigstore: %w", file, err)
	}
	options := []verify.VerifierOption{verify.WithObserverTimestamps(1), verify.WithoutStatementPredicate()}
	if len(trusted.RekorLogs()) > 0 {
		options = append(options, verify.WithTransparencyLog(1))
	}
	if len(trusted.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	return verify.NewVerifier(trusted, options...)
}

// trustedFor returns whose signatures count for r's repository. It fails if there must be one and there is none.
func (p *Policy) trustedFor(r registry.Reference) (list []*trustedSigner, err error) {
	if p == nil {
		return nil, nil
	}
	for _, s := range p.signers {
		if slices.ContainsFunc(s.patterns, func(p pattern) bool { return p.matches(r) }) {
			list = append(list, s)
		}
	}
	if p.required && len(list) == 0 {
		return nil, fmt.Errorf(
			"%s/%s has no trusted signer, and signatures.required is set: add "+
				"it to the list for of one of signers", r.Registry, r.Repository)
	}
	return list, nil
}

// CheckRecorded fails if policy needs a signature for r's repository and the signer, who was verified earlier and
// recorded with the plugin's digest, is none of those who are trusted now. It is for plugins that are installed from
// copies, without a registry.
func (p *Policy) CheckRecorded(r registry.Reference, recorded Signer) error {
	trusted, err := p.trustedFor(r)
	if err != nil || len(trusted) == 0 || slices.ContainsFunc(trusted,
		func(t *trustedSigner) bool { return t.is(recorded) }) {
		return err
	}
	return fmt.Errorf("%s/%s is %s, by the lock file, and signers in the configuration needs another signature for "+
		"this repository: install it again from the registry", r.Registry, r.Repository, recorded)
}

// is reports whether a verified signer is t.
func (t *trustedSigner) is(s Signer) bool {
	if t.key != nil {
		return s.Key == t.key.ID
	}
	return t.identity.Verify(certificate.Summary{SubjectAlternativeName: s.Subject,
		Extensions: certificate.Extensions{Issuer: s.Issuer}}) == nil
}

// CheckUnsigned fails if plugins without signature are refused, such as files and what https URLs answer.
func (p *Policy) CheckUnsigned(from string) error {
	if p == nil || !p.required {
		return nil
	}
	return fmt.Errorf(
		"%s has no signature that hako can verify, and signatures.required is set: install the plugin from "+
			"a registry", from)
}

// maxFile bounds the operator's files, in bytes.
const maxFile = 4 << 20

// readSmall reads one of the operator's files. Another kind of file could keep the start waiting.
func readSmall(file string) ([]byte, error) {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	return wholefile.ReadAtMost(file, maxFile)
}
