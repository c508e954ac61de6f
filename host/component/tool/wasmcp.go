package tool

import (
	"context"
	"errors"

	"github.com/hako-run/hako/host/component"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

type listedInterface struct{}

func listedInterfaces(c *component.Component) (map[string]*listedInterface, error) { return nil, nil }

func isListed(string) bool { return false }

func (a *Adapter) Lists() bool { return len(a.listed) > 0 }

func (a *Adapter) completeListed([]byte) (*manifest.Manifest, error) { return nil, errors.New("todo") }

func (a *Adapter) serveListed(context.Context, guest, *abi.Request) (*abi.Response, error) {
	return nil, errors.New("todo")
}
