package link

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/component/canon"
)

// Host is the sandbox of a running instance.
type Host struct {
	// Instantiate instantiates the core module with this ID.
	Instantiate func(ctx context.Context, id int) (api.Module, error)
	// Charge charges steps to the call. It panics to end the call.
	Charge func(steps int64)
	// Reserve reserves host memory for values, Release releases some of it.
	Reserve func(bytes int64) error
	Release func(bytes int64)
	// CheckResult gets a lower bound for the size of a result of Call, while that is lifted. An error ends the call.
	CheckResult func(bytes int64) error
}

// Instance is an instance of a Program. It must not be used by two goroutines at once.
type Instance struct {
	program *Program
	host    Host
	// reserved counts the bytes that reserve has reserved and release has not released.
	reserved int64
	reserve  func(bytes int64) error
	// modules are the core instances by their numbers, reexports those that the sandbox did not make.
	modules    []api.Module
	reexports  []api.Module
	components []componentInstance
	handles    int                   // of all components
	types      []*canon.ResourceType // by resource.number
	functions  []boundFunction       // by the numbers of Program.functions
	memories   []api.Memory          // by the numbers of Program.memories
	// depth counts the calls of core functions in each other.
	depth int
	// dropping is the component instance that drops a handle.
	dropping int
	// failed is the error of the call that left the instance unusable.
	failed error
}

// componentInstance is the state of a component instance.
type componentInstance struct {
	handles *canon.Handles
	// entered is true while one of its functions runs. pinned is true while it must not call the host: in realloc and
	// post-return functions.
	entered, pinned bool
}

// boundFunction is a core function. busy is true while it runs.
type boundFunction struct {
	function api.Function
	busy     bool
}

// NewInstance returns an instance that has not started.
func (p *Program) NewInstance(host Host) *Instance {
	i := &Instance{program: p, host: host, modules: []api.Module{p.host}, dropping: -1,
		components: make([]componentInstance, len(p.components)), types: make([]*canon.ResourceType, len(p.resources)),
		functions: make([]boundFunction, len(p.functions)), memories: make([]api.Memory, len(p.memories))}
	i.reserve = func(bytes int64) error {
		err := host.Reserve(bytes)
		if err == nil {
			i.reserved += bytes
		}
		return err
	}
	for n := range i.components {
		resources := p.components[n]
		i.components[n].handles = canon.NewHandles(func(r *component.Resource) *canon.ResourceType {
			if known := resources[r]; known != nil {
				return i.types[known.number]
			}
			return nil
		}, &i.handles)
	}
	for n, r := range p.resources {
		i.types[n] = &canon.ResourceType{Name: r.name}
		if r.owner >= 0 {
			i.types[n].Handles = i.components[r.owner].handles
			i.types[n].Destructor = i.destructor(r)
		}
	}
	return i
}

// Start instantiates the core modules. It may be called once. The instance must be closed also if it fails.
func (i *Instance) Start(ctx context.Context) error {
	for n := range i.program.steps {
		s := &i.program.steps[n]
		linked := experimental.WithImportResolver(ctx, func(name string) api.Module {
			if number, ok := s.args[name]; ok {
				return i.modules[number]
			}
			return nil
		})
		module, err := i.instantiate(linked, s)
		if err != nil {
			return err
		}
		i.modules = append(i.modules, module)
	}
	return nil
}

func (i *Instance) instantiate(ctx context.Context, s *step) (api.Module, error) {
	if s.code == nil {
		return i.host.Instantiate(ctx, s.id)
	}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	module, err := i.program.runtime.InstantiateModule(ctx, s.code, config)
	if err == nil {
		i.reexports = append(i.reexports, module)
	}
	return module, err
}

// Close drops the resources of the host and closes the modules that Host.Instantiate did not return. No guest code
// runs.
func (i *Instance) Close() error {
	for n := range i.components {
		i.components[n].handles.Close()
	}
	var err error
	for _, module := range i.reexports {
		err = errors.Join(err, module.Close(context.Background()))
	}
	i.reexports = nil
	return err
}

// Failed returns the error of the call that left the instance unusable, or nil.
func (i *Instance) Failed() error { return i.failed }

// Snapshot is the state of an instance between two calls, apart from its core modules.
type Snapshot struct {
	tables []canon.Snapshot
	types  map[*canon.ResourceType]int
}

// Snapshot returns the state of the instance.
func (i *Instance) Snapshot() *Snapshot {
	s := &Snapshot{types: make(map[*canon.ResourceType]int, len(i.types))}
	for n, t := range i.types {
		s.types[t] = n
	}
	for n := range i.components {
		s.tables = append(s.tables, i.components[n].handles.Snapshot())
	}
	return s
}

// Restore sets the state to that of a snapshot of this instance or another one of the program. Resources of the host
// that the instance holds and the snapshot does not are dropped.
func (i *Instance) Restore(s *Snapshot) {
	for n := range i.components {
		i.components[n].handles.Restore(s.tables[n], func(t *canon.ResourceType) *canon.ResourceType {
			return i.types[s.types[t]]
		})
	}
}

// CallScoped returns the name of a resource of the host that the instance holds and that belongs to one call, or "".
// Such an instance cannot be copied.
func (i *Instance) CallScoped() string {
	for n := range i.components {
		if name := i.components[n].handles.CallScoped(); name != "" {
			return name
		}
	}
	return ""
}

// EndCall drops the resources of the host that belong to the call.
func (i *Instance) EndCall() {
	for n := range i.components {
		i.components[n].handles.DropCallScoped()
	}
}

// maxDepth bounds the calls of core functions in each other, through the host. Each has a stack of its own.
const maxDepth = 100

var errDepth = errors.New("calls between components and the host are nested more than " +
	strconv.Itoa(maxDepth) + " deep")

// invoke calls a core function. stack has its arguments and gets its results.
func (i *Instance) invoke(ctx context.Context, number int, stack []uint64) error {
	f := &i.functions[number]
	if f.function == nil {
		var err error
		if f.function, err = i.newFunction(number); err != nil {
			return err
		}
	}
	function := f.function
	if f.busy { // it is called by itself, through the host: it needs another stack
		var err error
		if function, err = i.newFunction(number); err != nil {
			return err
		}
	}
	if i.depth == maxDepth {
		return errDepth
	}
	i.depth++
	busy := f.busy
	f.busy = true
	err := function.CallWithStack(ctx, stack)
	f.busy = busy
	i.depth--
	return err
}

func (i *Instance) newFunction(number int) (api.Function, error) {
	item := &i.program.functions[number]
	if item.instance < len(i.modules) {
		if f := i.modules[item.instance].ExportedFunction(item.name); f != nil {
			return f, nil
		}
	}
	return nil, fmt.Errorf("the core function %q does not exist yet", item.name)
}

func (i *Instance) memory(number int) (canon.Memory, error) {
	if i.memories[number] == nil {
		item := &i.program.memories[number]
		if item.instance < len(i.modules) {
			i.memories[number] = i.modules[item.instance].ExportedMemory(item.name)
		}
		if i.memories[number] == nil {
			return nil, fmt.Errorf("the memory %q does not exist yet", item.name)
		}
	}
	return i.memories[number], nil
}
