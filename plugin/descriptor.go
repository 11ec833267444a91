package plugin

import (
	"strconv"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/plugin_pb"

	"github.com/seaice/seaice/config"
)

// Version is the version of the descriptor. The admin keeps the highest it has
// seen, so it must be above the built-in worker's and grow with every change
// of the forms.
const Version = 10

// Descriptor is what the admin shows of the job type.
type Descriptor struct {
	Title string
	About string
	Icon  string
	// Version is at least 10; see the constant.
	Version uint32
	Worker  config.Form
	Admin   config.Form
	Runtime Runtime
}

// Runtime are the admin's own settings for the job type on a fresh
// installation.
type Runtime struct {
	Enabled           bool
	DetectionInterval time.Duration
	DetectionTimeout  time.Duration
	MaxJobs           int
	Concurrency       int
	WorkerConcurrency int
	Retries           int
	RetryBackoff      time.Duration
	MaxRuntime        time.Duration
	ExecutionTimeout  time.Duration
}

// Describe is the descriptor of Iceberg maintenance. The job type is off until
// somebody enables it, as the built-in worker has it.
func Describe() Descriptor {
	return Descriptor{
		Title:   "Iceberg maintenance",
		About:   "Compacts data files, merges delete files and manifests, expires snapshots and removes unreferenced files of Iceberg tables in table buckets.",
		Icon:    "fas fa-snowflake",
		Version: Version,
		Worker:  config.WorkerForm(),
		Admin:   config.AdminForm(),
		Runtime: Runtime{
			DetectionInterval: time.Hour,
			DetectionTimeout:  5 * time.Minute,
			MaxJobs:           100,
			Concurrency:       4,
			WorkerConcurrency: 2,
			Retries:           1,
			RetryBackoff:      time.Minute,
			MaxRuntime:        time.Hour,
			ExecutionTimeout:  time.Hour,
		},
	}
}

func (d Descriptor) wire() *plugin_pb.JobTypeDescriptor {
	worker, admin := wireForm(d.Worker), wireForm(d.Admin)
	return &plugin_pb.JobTypeDescriptor{
		JobType:             JobType,
		DisplayName:         d.Title,
		Description:         d.About,
		Icon:                d.Icon,
		DescriptorVersion:   d.Version,
		WorkerConfigForm:    worker,
		AdminConfigForm:     admin,
		WorkerDefaultValues: worker.DefaultValues,
		AdminRuntimeDefaults: &plugin_pb.AdminRuntimeDefaults{
			Enabled:                       d.Runtime.Enabled,
			DetectionIntervalMinutes:      int32(d.Runtime.DetectionInterval / time.Minute),
			DetectionTimeoutSeconds:       int32(d.Runtime.DetectionTimeout / time.Second),
			MaxJobsPerDetection:           int32(d.Runtime.MaxJobs),
			GlobalExecutionConcurrency:    int32(d.Runtime.Concurrency),
			PerWorkerExecutionConcurrency: int32(d.Runtime.WorkerConcurrency),
			RetryLimit:                    int32(d.Runtime.Retries),
			RetryBackoffSeconds:           int32(d.Runtime.RetryBackoff / time.Second),
			JobTypeMaxRuntimeSeconds:      int32(d.Runtime.MaxRuntime / time.Second),
			ExecutionTimeoutSeconds:       int32(d.Runtime.ExecutionTimeout / time.Second),
		},
	}
}

func wireForm(f config.Form) *plugin_pb.ConfigForm {
	out := &plugin_pb.ConfigForm{FormId: f.ID, Title: f.Title, Description: f.About, DefaultValues: map[string]*plugin_pb.ConfigValue{}}
	for _, s := range f.Sections {
		box := &plugin_pb.ConfigSection{SectionId: s.ID, Title: s.Title, Description: s.About}
		for _, field := range s.Fields {
			box.Fields = append(box.Fields, wireField(field))
			out.DefaultValues[field.Name] = defaultValue(field)
		}
		out.Sections = append(out.Sections, box)
	}
	return out
}

func wireField(f config.Field) *plugin_pb.ConfigField {
	out := &plugin_pb.ConfigField{Name: f.Name, Label: f.Label, Description: f.Help, Placeholder: f.Placeholder}
	out.FieldType, out.Widget = widget(f.Kind)
	switch f.Kind {
	case config.KindInt, config.KindSize, config.KindSpan:
		out.MinValue, out.MaxValue = Int(f.Min).wire(), Int(f.Max).wire()
	case config.KindRatio:
		out.MinValue, out.MaxValue = Float(float64(f.Min)/1000).wire(), Float(float64(f.Max)/1000).wire()
	default:
	}
	for _, o := range f.Options {
		out.Options = append(out.Options, &plugin_pb.ConfigOption{Value: o.Value, Label: o.Label})
	}
	if f.Advanced {
		out.VisibleWhenField, out.VisibleWhenEquals = config.AdvancedField, True.wire()
	}
	return out
}

// widget maps a kind to what the admin's page can show. Lists stay texts: a
// list field would have to be typed as JSON.
func widget(k config.Kind) (plugin_pb.ConfigFieldType, plugin_pb.ConfigWidget) {
	switch k {
	case config.KindInt, config.KindSize, config.KindSpan:
		return plugin_pb.ConfigFieldType_CONFIG_FIELD_TYPE_INT64, plugin_pb.ConfigWidget_CONFIG_WIDGET_NUMBER
	case config.KindRatio:
		return plugin_pb.ConfigFieldType_CONFIG_FIELD_TYPE_DOUBLE, plugin_pb.ConfigWidget_CONFIG_WIDGET_NUMBER
	case config.KindBool:
		return plugin_pb.ConfigFieldType_CONFIG_FIELD_TYPE_BOOL, plugin_pb.ConfigWidget_CONFIG_WIDGET_TOGGLE
	case config.KindEnum:
		return plugin_pb.ConfigFieldType_CONFIG_FIELD_TYPE_ENUM, plugin_pb.ConfigWidget_CONFIG_WIDGET_SELECT
	case config.KindRules:
		return plugin_pb.ConfigFieldType_CONFIG_FIELD_TYPE_STRING, plugin_pb.ConfigWidget_CONFIG_WIDGET_TEXTAREA
	default:
		return plugin_pb.ConfigFieldType_CONFIG_FIELD_TYPE_STRING, plugin_pb.ConfigWidget_CONFIG_WIDGET_TEXT
	}
}

// defaultValue is the default in the wire type of its widget. The table of
// settings is tested to hold only defaults that parse.
func defaultValue(f config.Field) *plugin_pb.ConfigValue {
	switch f.Kind {
	case config.KindInt, config.KindSize, config.KindSpan:
		n, _ := strconv.ParseInt(f.Default, 10, 64)
		return Int(n).wire()
	case config.KindRatio:
		x, _ := strconv.ParseFloat(f.Default, 64)
		return Float(x).wire()
	case config.KindBool:
		if f.Default == "true" {
			return True.wire()
		}
		return False.wire()
	default:
		return Text(f.Default).wire()
	}
}
