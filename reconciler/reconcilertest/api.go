package reconcilertest

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/naming"
)

// FakeAPI is client-go's fake clientset with what the reconciler rests on and
// the fake leaves out: UIDs, versions, generations, and preconditions on them.
type FakeAPI struct {
	*fake.Clientset
	tracker clienttesting.ObjectTracker
	version atomic.Int64
}

// newTracker is the store of the fake clientset for the groups that quorate uses: with
// each write the store maps all kinds of its scheme.
func newTracker() clienttesting.ObjectTracker {
	scheme := runtime.NewScheme()
	groups := runtime.NewSchemeBuilder(
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme, coordinationv1.AddToScheme,
	)
	if err := groups.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return clienttesting.NewFieldManagedObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder(), applyconfigurations.NewTypeConverter(scheme))
}

func NewFakeAPI(objects ...runtime.Object) *FakeAPI {
	api := &FakeAPI{Clientset: &fake.Clientset{}, tracker: newTracker()}
	for _, o := range objects {
		if err := api.tracker.Add(o); err != nil {
			panic(err)
		}
	}
	api.AddReactor("*", "*", clienttesting.ObjectReaction(api.tracker))
	api.AddWatchReactor("*", api.watch)
	api.PrependReactor("create", "*", api.create)
	api.PrependReactor("update", "*", api.update)
	api.PrependReactor("patch", "*", api.patch)
	api.PrependReactor("delete", "*", api.remove)
	return api
}

// Tracker is the store.
func (api *FakeAPI) Tracker() clienttesting.ObjectTracker { return api.tracker }

func (api *FakeAPI) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	var options metav1.ListOptions
	if w, ok := action.(clienttesting.WatchActionImpl); ok {
		options = w.ListOptions
	}
	w, err := api.tracker.Watch(action.GetResource(), action.GetNamespace(), options)
	return err == nil, w, err
}

// find returns what is stored, nil when nothing is.
func (api *FakeAPI) find(action clienttesting.Action, name string) runtime.Object {
	object, err := api.Tracker().Get(action.GetResource(), action.GetNamespace(), name)
	if err != nil {
		return nil
	}
	return object
}

// stamp gives an object another version, and at first the rest.
func (api *FakeAPI) stamp(o metav1.Object) {
	version := api.version.Add(1)
	o.SetResourceVersion(strconv.FormatInt(version, 10))
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("uid-%d", version)))
		o.SetCreationTimestamp(metav1.Now().Rfc3339Copy()) // in whole seconds, as the API server writes it
	}
}

func (api *FakeAPI) create(action clienttesting.Action) (bool, runtime.Object, error) {
	create, _ := action.(clienttesting.CreateAction)
	if o, err := meta.Accessor(create.GetObject()); err == nil {
		o.SetUID("")
		o.SetGeneration(1)
		api.stamp(o)
	}
	return false, nil, nil
}

func (api *FakeAPI) update(action clienttesting.Action) (bool, runtime.Object, error) {
	update, _ := action.(clienttesting.UpdateAction)
	o, err := meta.Accessor(update.GetObject())
	if err != nil {
		return true, nil, err
	}
	before := api.find(action, o.GetName())
	if before == nil {
		return false, nil, nil
	}
	if err := precondition(action, before, o.GetName(), o.GetUID(), o.GetResourceVersion()); err != nil {
		return true, nil, err
	}
	if sameContent(before, update.GetObject()) {
		return true, before, nil
	}
	api.stamp(o)
	return false, nil, nil
}

// patch does server-side apply. What changes nothing keeps the version, as on a
// real API server.
func (api *FakeAPI) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	patch, ok := action.(clienttesting.PatchActionImpl)
	if !ok || patch.GetPatchType() != types.ApplyPatchType {
		return false, nil, nil
	}
	var want metav1.PartialObjectMetadata
	if err := json.Unmarshal(patch.GetPatch(), &want); err != nil {
		return true, nil, err
	}
	before := api.find(action, patch.GetName())
	if err := precondition(action, before, patch.GetName(), want.UID, want.ResourceVersion); err != nil {
		return true, nil, err
	}
	if len(patch.PatchOptions.DryRun) > 0 && before != nil {
		_, would, err := clienttesting.ObjectReaction(fake.NewClientset(before.DeepCopyObject()).Tracker())(action)
		return true, would, err
	}
	_, after, err := clienttesting.ObjectReaction(api.Tracker())(action)
	if err != nil {
		return true, nil, err
	}
	if before != nil && sameContent(before, after) && sameOwned(before, after) {
		return true, before, api.Tracker().Update(action.GetResource(), before, action.GetNamespace())
	}
	o, err := meta.Accessor(after)
	if err != nil {
		return true, nil, err
	}
	o.SetGeneration(o.GetGeneration() + 1)
	api.stamp(o)
	return true, after, api.Tracker().Update(action.GetResource(), after, action.GetNamespace())
}

// sameOwned reports whether quorate owns the same in both: to take a field over is a change,
// also where its value is none.
func sameOwned(a, b runtime.Object) bool {
	return slices.Equal(ownedBy(a), ownedBy(b))
}

func ownedBy(object runtime.Object) (fields []string) {
	o, err := meta.Accessor(object)
	if err != nil {
		return nil
	}
	for _, e := range o.GetManagedFields() {
		if e.Manager == naming.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.FieldsV1 != nil {
			text, _ := io.ReadAll(e.FieldsV1.GetRawReader())
			fields = append(fields, string(text))
		}
	}
	return fields
}

func (api *FakeAPI) remove(action clienttesting.Action) (bool, runtime.Object, error) {
	remove, _ := action.(clienttesting.DeleteActionImpl)
	p := remove.DeleteOptions.Preconditions
	if before := api.find(action, remove.GetName()); before != nil && p != nil && p.UID != nil {
		if err := precondition(action, before, remove.GetName(), *p.UID, ""); err != nil {
			return true, nil, err
		}
	}
	return false, nil, nil
}

// precondition compares the UID and the version that a request names.
func precondition(action clienttesting.Action, before runtime.Object, name string, uid types.UID, version string) error {
	conflict := func(text string) error {
		return apierrors.NewConflict(action.GetResource().GroupResource(), name, fmt.Errorf("%s", text))
	}
	if before == nil {
		if uid != "" {
			return conflict("the UID names an object that does not exist")
		}
		return nil
	}
	o, err := meta.Accessor(before)
	switch {
	case err != nil:
		return err
	case uid != "" && uid != o.GetUID():
		return conflict("the UID is another one")
	case version != "" && version != o.GetResourceVersion():
		return conflict("the object has been modified")
	}
	return nil
}

func sameContent(a, b runtime.Object) bool {
	plain := func(object runtime.Object) runtime.Object {
		object = object.DeepCopyObject()
		if o, err := meta.Accessor(object); err == nil {
			o.SetManagedFields(nil)
			o.SetResourceVersion("")
		}
		return object
	}
	return equality.Semantic.DeepEqual(plain(a), plain(b))
}

// Requests lists what was asked of the API since the last call: "get pods
// shop/orders-0". Watches belong to the caches, and are left out.
func (api *FakeAPI) Requests() []string {
	var list []string
	for _, a := range api.Actions() {
		if a.GetVerb() == "watch" {
			continue
		}
		name := ""
		if n, ok := a.(interface{ GetName() string }); ok {
			name = n.GetName()
		}
		if create, ok := a.(clienttesting.CreateAction); ok && name == "" {
			if o, err := meta.Accessor(create.GetObject()); err == nil {
				name = o.GetName()
			}
		}
		verb := a.GetVerb()
		if patch, ok := a.(clienttesting.PatchActionImpl); ok && len(patch.PatchOptions.DryRun) > 0 {
			verb = "dry-run"
		}
		list = append(list, strings.TrimSpace(verb+" "+a.GetResource().Resource+" "+name))
	}
	api.ClearActions()
	return list
}

// Writes are the requests that change something.
func (api *FakeAPI) Writes() []string {
	return slices.DeleteFunc(api.Requests(), func(r string) bool {
		return strings.HasPrefix(r, "get ") || strings.HasPrefix(r, "list ") || strings.HasPrefix(r, "dry-run ")
	})
}
