DROP TRIGGER compute_tenant_never_returns ON compute_tenant_states;
DROP FUNCTION compute_tenant_never_returns();
DROP FUNCTION compute_admit_tenants(text[], boolean);
DROP FUNCTION compute_tenant_lock(text);
