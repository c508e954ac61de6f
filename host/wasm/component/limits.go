package component

// Limits of a component. They bound the memory and time for decoding and validating it, and the depth of recursion
// through its types at run time. Real components (componentize-js, componentize-py, wit-bindgen, compositions of ten
// components) stay below a tenth of each.
const (
	maxName        = 10_000 // bytes
	maxNesting     = 50     // components, component types and instance types in each other
	maxModules     = 1_000  // core modules of all nested components
	maxComponents  = 1_000  // nested components
	maxDefinitions = 100_000
	maxEntries     = 10_000  // arguments of an instantiation; exports of an instance; fields, cases; parameters
	maxCoreValues  = 1_000   // parameters, or results, of a core function
	maxCoreItems   = 300_000 // entries of a section of a core module
	maxFlags       = 32      // labels of flags, by the specification
	maxTypeDepth   = 100     // value types in each other

	// maxTypes bounds the types of all kinds, with the copies for resources that instantiation makes new, and with
	// their fields and exports.
	maxTypes = 300_000
	// maxTypeSize bounds the value types that a type mentions, each as often as it is mentioned: a few lines can define
	// a type with 2^100 fields.
	maxTypeSize = 100_000
	// maxSteps bounds the work of comparing and flattening types, one step for each mentioned type.
	maxSteps = 10_000_000
	// maxValueSize bounds the bytes of one value in memory with pointers of 64 bits, by the specification.
	maxValueSize = 1<<28 - 1
)
