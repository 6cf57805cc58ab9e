package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
)

type invalid struct {
	Object  string `json:"object"`
	Message string `json:"message"`
}

// strict: a misspelt field would be dropped silently, and the case would test nothing.
var strict = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDecoder()

var strategies = map[schema.GroupVersionKind]rest.RESTCreateStrategy{
	corev1.SchemeGroupVersion.WithKind("Pod"):                   pod.Strategy,
	corev1.SchemeGroupVersion.WithKind("Node"):                  node.Strategy,
	corev1.SchemeGroupVersion.WithKind("Namespace"):             namespace.Strategy,
	corev1.SchemeGroupVersion.WithKind("PersistentVolume"):      persistentvolume.Strategy,
	corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"): persistentvolumeclaim.Strategy,
	storagev1.SchemeGroupVersion.WithKind("StorageClass"):       storageclass.Strategy,
	storagev1.SchemeGroupVersion.WithKind("CSINode"):            csinode.Strategy,
	storagev1.SchemeGroupVersion.WithKind("CSIDriver"):          csidriver.Strategy,
	storagev1.SchemeGroupVersion.WithKind("CSIStorageCapacity"): csistoragecapacity.Strategy,
	storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"):   volumeattachment.Strategy,
}

// admit does what the API server does with an object that is created and whose status is then written.
func admit(document json.RawMessage) (runtime.Object, *invalid) {
	var given struct {
		runtime.TypeMeta `json:",inline"`
		Metadata         struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(document, &given); err != nil {
		return nil, &invalid{"?", err.Error()}
	}
	name := strings.Trim(fmt.Sprintf("%s %s/%s", given.Kind, given.Metadata.Namespace, given.Metadata.Name), "/")
	refuse := func(why string) (runtime.Object, *invalid) { return nil, &invalid{name, why} }
	version := schema.FromAPIVersionAndKind(given.APIVersion, given.Kind)
	strategy, known := strategies[version]
	if !known {
		return refuse(fmt.Sprintf("kind %s of %q is not judged here", given.Kind, given.APIVersion))
	}
	object, err := runtime.Decode(strict, document)
	if err != nil {
		return refuse(err.Error())
	}
	asGiven := object.DeepCopyObject()
	accessor, err := meta.Accessor(object)
	if err != nil {
		return refuse(err.Error())
	}
	ctx := genericapirequest.WithNamespace(context.Background(), accessor.GetNamespace())
	if err := rest.BeforeCreate(strategy, ctx, object); err != nil {
		return refuse(err.Error())
	}
	accessor.SetResourceVersion("1")
	if errs := writeStatus(ctx, object, asGiven); len(errs) > 0 {
		return refuse(errs.ToAggregate().Error())
	}
	stored, err := legacyscheme.Scheme.ConvertToVersion(object, version.GroupVersion())
	if err != nil {
		return refuse(err.Error())
	}
	return stored, nil
}

// writeStatus is the update that a kubelet or a controller makes; a create ignores the status of most kinds.
func writeStatus(ctx context.Context, object, given runtime.Object) field.ErrorList {
	created := object.DeepCopyObject()
	switch object := object.(type) {
	case *api.Pod:
		object.Status = given.(*api.Pod).Status
		object.Status.QOSClass = created.(*api.Pod).Status.QOSClass
		return pod.StatusStrategy.ValidateUpdate(ctx, object, created)
	case *api.Node:
		return node.StatusStrategy.ValidateUpdate(ctx, object, created)
	case *api.PersistentVolume:
		object.Status = given.(*api.PersistentVolume).Status
		return persistentvolume.StatusStrategy.ValidateUpdate(ctx, object, created)
	case *api.PersistentVolumeClaim:
		object.Status = given.(*api.PersistentVolumeClaim).Status
		return persistentvolumeclaim.StatusStrategy.ValidateUpdate(ctx, object, created)
	}
	return nil
}
