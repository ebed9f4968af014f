package admission

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"

	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mutate lets a webhook change objects of the namespace, and waits until it does. A webhook, since every
// supported Kubernetes has them; was is nil where the object is created.
func mutate[T any](w *world, group, resource string, edit func(is, was *T)) (stop func()) {
	w.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		var review reviewv1.AdmissionReview
		if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		patch, err := edited(review.Request, edit)
		if err != nil {
			http.Error(out, err.Error(), http.StatusInternalServerError)
			return
		}
		review.Response = &reviewv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, PatchType: new(reviewv1.PatchTypeJSONPatch), Patch: patch}
		review.Request = nil
		_ = json.NewEncoder(out).Encode(review)
	}))
	w.Cleanup(server.Close)
	client := w.kube.AdmissionregistrationV1().MutatingWebhookConfigurations()
	name := w.namespace + "-" + resource
	_, err := client.Create(w.Context(), &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: name + ".quorate.test", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionv1.SideEffectClassNone),
			ReinvocationPolicy: new(admissionv1.IfNeededReinvocationPolicy), NamespaceSelector: w.selector(), Rules: []admissionv1.RuleWithOperations{writesTo(group, resource)},
			ClientConfig: admissionv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
		}},
	}, metav1.CreateOptions{})
	w.must(err)
	return w.inForce(func() { _ = client.Delete(context.Background(), name, metav1.DeleteOptions{}) })
}

// edited is the JSON patch that makes of an object what edit does.
func edited[T any](request *reviewv1.AdmissionRequest, edit func(is, was *T)) ([]byte, error) {
	is, was := new(T), (*T)(nil)
	if err := json.Unmarshal(request.Object.Raw, is); err != nil {
		return nil, err
	}
	if request.OldObject.Raw != nil {
		was = new(T)
		if err := json.Unmarshal(request.OldObject.Raw, was); err != nil {
			return nil, err
		}
	}
	edit(is, was)
	return json.Marshal([]map[string]any{{"op": "replace", "path": "", "value": is}})
}
