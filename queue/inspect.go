package queue

// Inspector is implemented by a Queue that read back, when it was opened, how its
// broker keeps what it was given, so that a program can refuse a setting that
// Capabilities do not tell. The names are the broker's own; what it does not tell
// is absent.
type Inspector interface {
	Settings() map[string]string
}
