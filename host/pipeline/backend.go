package pipeline

import (
	"context"
	"errors"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/pdk/abi"
)

// callBackend calls the plugin or upstream server. If it was replaced before it began, its successor is called.
func (p *Pipeline) callBackend(ctx context.Context, c *served) (err error) {
	invocation := p.invocation(ctx, c)
	var composed *composer
	if c.subject.source.Calls != nil {
		composed = &composer{pipeline: p, served: c, progress: invocation.Progress}
		invocation.Tools, invocation.Progress = composed, composed.report
		defer func() { c.record.Steps -= composed.steps.Load() }()
	}
	response, err := invoke(ctx, c.subject.source, invocation)
	for errors.Is(err, catalog.ErrClosed) {
		next := p.successor(c.subject, &c.request)
		if next == nil {
			return &abi.Error{Code: abi.CodeNotFound, Message: c.subject.offered +
				" was replaced or removed while the call was on its way, and nothing was called: look again at what " +
				"there is"}
		}
		c.subject.source = next
		response, err = invoke(ctx, next, invocation)
	}
	switch {
	case err != nil && composed != nil:
		return composed.withCalls(err)
	case err != nil:
		return err
	case response.Error != nil:
		return response.Error
	}
	c.response = response
	return nil
}

// invocation is the call as its backend gets it.
func (p *Pipeline) invocation(ctx context.Context, c *served) *catalog.Invocation {
	tenant := c.Caller.Tenant
	c.request.Locale = p.locale(c.Call)
	elicitor := &elicitor{ctx: ctx, pipeline: p, served: c}
	invocation := &catalog.Invocation{
		Request: &c.request, Limits: c.subject.limits,
		Progress: p.scanProgress(c.record.running.withProgress(c.Progress)),
		Tenant:   tenant, User: c.Caller.User, Session: c.Caller.sessionID(), Owner: c.Caller.owner(),
		MaxResult: c.MaxResult,
		Updated:   func(uri string) { p.notifyUpdated(c.subject.source.Name, tenant, uri) },
		Ask:       p.asker(c),
		Elicit:    elicitor.elicit, CanElicit: c.Prompter.Fill != nil,
		Steps: &c.record.Steps,
	}
	if c.record.running != nil {
		invocation.Delivery = c.record.running.delivery
	}
	return invocation
}

// invoke calls the source with its current roots, and its configuration for the tenant.
func invoke(ctx context.Context, s *catalog.Source, invocation *catalog.Invocation) (*abi.Response, error) {
	invocation.Request.Config, invocation.Request.Roots = s.ConfigFor(invocation.Tenant), s.Roots
	return s.Backend.Call(ctx, invocation)
}
