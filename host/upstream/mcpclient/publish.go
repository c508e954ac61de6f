package mcpclient

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
)

// present offers the entries of lists, and reports whether the lists differ from those before.
func (s *server) present(l *listing) (changed bool, err error) {
	digest, err := l.digest()
	if err != nil {
		return false, err
	}
	s.offering.Lock()
	defer s.offering.Unlock()
	if s.offered && digest == s.digest {
		return false, nil
	}
	before := s.currentOffer()
	o := newOffer(&s.spec, l, before)
	s.mu.Lock()
	s.offer = merged(o, before) // clients that have not heard of the change may use old names
	s.mu.Unlock()
	err = s.put(o)
	s.mu.Lock()
	if s.offer = o; err != nil {
		s.offer = before
	} else {
		s.status.Listed = true
	}
	s.mu.Unlock()
	if err != nil {
		return false, err
	}
	s.digest, s.offered = digest, true
	if !slices.Equal(o.omitted, before.omitted) {
		s.logOmitted(o.omitted)
	}
	s.logger.Info("the tools of an upstream server are available", "tools", len(o.manifest.Tools), "prompts",
		len(o.manifest.Prompts),
		"resources", len(o.manifest.Resources)+len(o.manifest.ResourceTemplates))
	return true, nil
}

// merged returns an offer with the names of both.
func merged(o, before *offer) *offer {
	m := *o
	m.tools, m.prompts = map[string]string{}, map[string]string{}
	for _, from := range []*offer{before, o} {
		for name, own := range from.tools {
			m.tools[name] = own
		}
		for name, own := range from.prompts {
			m.prompts[name] = own
		}
	}
	return &m
}

// maxOmittedLogged bounds the omitted entries that are logged.
const maxOmittedLogged = 20

func (s *server) logOmitted(omitted []string) {
	for i, what := range omitted {
		if i == maxOmittedLogged {
			s.logger.Warn("further entries of an upstream server are omitted", "more", len(omitted)-i)
			return
		}
		s.logger.Warn("an entry of an upstream server is omitted", "what", what)
	}
}

// upstreamSuffix distinguishes a server from a plugin of the same name in policies, quotas and records.
const upstreamSuffix = ".upstream"

// put adds o to the catalog. Names that another source offers are omitted. The caller holds offering.
func (s *server) put(o *offer) error {
	if !s.offered {
		s.source = s.spec.Name
	}
	source := catalog.Source{
		Name: s.source, Prefix: s.spec.prefix(), Upstream: true, Asks: s.spec.Elicitation != ElicitationDecline,
		Untrusted: !s.spec.TrustAnnotations, Backend: s,
	}
	for {
		err := s.options.Catalog.Put(source, o.manifest)
		var conflict *catalog.ConflictError
		if errors.As(err, &conflict) && conflict.Kind == "source" && s.source == s.spec.Name {
			s.source += upstreamSuffix
			source.Name = s.source
			continue
		}
		if !errors.As(err, &conflict) || !o.drop(conflict, source.Prefix) {
			return err
		}
	}
}

// drop omits the entry in conflict, and reports whether it was there.
func (o *offer) drop(conflict *catalog.ConflictError, prefix string) bool {
	m := *o.manifest
	before := len(m.Tools) + len(m.Prompts) + len(m.Resources) + len(m.ResourceTemplates)
	switch conflict.Kind {
	case "tool":
		m.Tools = slices.DeleteFunc(slices.Clone(m.Tools),
			func(t manifest.Tool) bool { return prefix+t.Name == conflict.Name })
	case "prompt":
		m.Prompts = slices.DeleteFunc(slices.Clone(m.Prompts),
			func(p manifest.Prompt) bool { return prefix+p.Name == conflict.Name })
	case "resource":
		m.Resources = slices.DeleteFunc(slices.Clone(m.Resources),
			func(r manifest.Resource) bool { return r.URI == conflict.Name })
	case "resource template":
		m.ResourceTemplates = slices.DeleteFunc(slices.Clone(m.ResourceTemplates),
			func(r manifest.ResourceTemplate) bool { return r.URITemplate == conflict.Name })
	}
	o.manifest = &m
	if len(m.Tools)+len(m.Prompts)+len(m.Resources)+len(m.ResourceTemplates) == before {
		return false
	}
	o.omit("%s %s: %s offers it already", conflict.Kind, quoted(conflict.Name), conflict.Holder)
	return true
}

// removeAfterOutage removes the server's entries from the catalog after an outage.
func (s *server) removeAfterOutage() {
	s.offering.Lock()
	defer s.offering.Unlock()
	last := s.sessions
	time.AfterFunc(cmp.Or(s.options.outage, outage), func() {
		s.offering.Lock()
		defer s.offering.Unlock()
		if s.sessions == last {
			s.remove()
		}
	})
}

// cancelRemoval cancels removeAfterOutage.
func (s *server) cancelRemoval() {
	s.offering.Lock()
	defer s.offering.Unlock()
	s.sessions++
}

// remove removes the server's entries from the catalog. The caller holds offering.
func (s *server) remove() {
	if s.offered {
		s.options.Catalog.Remove(s.source)
		s.offered = false
		s.mu.Lock()
		s.status.Listed = false
		s.mu.Unlock()
	}
}

// withdraw removes the server's entries from the catalog.
func (s *server) withdraw() {
	s.offering.Lock()
	defer s.offering.Unlock()
	s.remove()
}

// currentOffer returns the offer, with the server's names.
func (s *server) currentOffer() *offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offer
}
